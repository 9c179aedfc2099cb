// A few threads that work for one kernel call.
//
// Nothing spins or waits between calls. Helpers end with their team and are joined by a later call, or before the process
// forks or ends (`join_helpers`).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace gmil {

// Below this much work a second thread costs more than it saves.
constexpr double kFlopsPerThread = 2e6;

// Wait for the helpers of all calls that are over.
void join_helpers();

// In the child of a fork there are no helpers, and a lock of the parent may be held by nobody.
void forget_helpers();

// Thrown by Team::run on the calling thread when the check below says that the caller wants to stop.
struct Interrupted {};

// Asked now and then while a kernel runs, on the thread that called it; anything but zero stops it.
using InterruptCheck = int (*)();
void set_interrupt_check(InterruptCheck check);

// The calling thread and the helpers that work for one kernel call.
class Team {
 public:
  using Task = void (*)(void* context, std::int64_t index, int worker);

  // At most `n_threads` workers, and no more than `flops`, the work of the whole call, can feed.
  Team(int n_threads, double flops);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  int size() const { return size_; }

  // Run task(context, i, worker) for every i below n_tasks, in any order, and wait. `flops` is the work of this
  // run: a small one stays on the calling thread. The first exception of a task is thrown again here.
  void run(std::int64_t n_tasks, double flops, Task task, void* context);

 private:
  using Clock = std::chrono::steady_clock;

  struct State;

  void stop_if_interrupted();

  int size_;
  Clock::time_point next_check_;
  std::shared_ptr<State> state_;  // shared with helpers; null until they are needed
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
