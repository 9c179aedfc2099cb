// A few threads that live as long as one kernel call.
//
// No pool outlives the call: nothing is waited for when a process forks, and nothing spins between calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gmil {

// Below this much work a second thread costs more than it saves.
constexpr double kFlopsPerThread = 2e6;

class Team {
 public:
  using Task = void (*)(void* context, std::int64_t index, int worker);

  // At most `n_threads` workers, and no more than `flops`, the work of the whole call, can feed.
  Team(int n_threads, double flops);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  int size() const;

  // Run task(context, i, worker) for every i below n_tasks, in any order, and wait. `flops` is the work of this
  // run: a small one stays on the calling thread. The first exception of a task is thrown again here.
  void run(std::int64_t n_tasks, double flops, Task task, void* context);

 private:
  struct State;
  State* state_;
};

namespace {

// The same for a lambda (index, worker).
template <class Function>
void for_each_task(Team& team, std::int64_t n_tasks, double flops, const Function& function) {
  const auto call = [](void* context, std::int64_t index, int worker) {
    (*static_cast<const Function*>(context))(index, worker);
  };
  team.run(n_tasks, flops, call, const_cast<Function*>(&function));
}

// Scratch of type S, one for every worker, made before the work starts.
template <class S>
class PerWorker {
 public:
  template <class... Arguments>
  explicit PerWorker(int n_workers, const Arguments&... arguments)
      : n_workers_(n_workers), scratch_(new S*[static_cast<std::size_t>(n_workers)]()) {
    try {
      for (int w = 0; w < n_workers; ++w) scratch_[w] = new S(arguments...);
    } catch (...) {
      free_all();
      throw;
    }
  }
  PerWorker(const PerWorker&) = delete;
  PerWorker& operator=(const PerWorker&) = delete;
  ~PerWorker() { free_all(); }

  S& operator[](int worker) { return *scratch_[worker]; }

 private:
  void free_all() {
    for (int w = 0; w < n_workers_; ++w) delete scratch_[w];
    delete[] scratch_;
  }

  int n_workers_;
  S** scratch_;
};

}  // namespace
}  // namespace gmil
