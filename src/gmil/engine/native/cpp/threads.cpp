#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace gmil {

// Shared by the team and its helpers. The last of them deletes it, because a team does not wait for helpers that
// have nothing left to do: on a busy machine it may take milliseconds until they run at all.
struct Team::State {
  int size = 1;
  bool started = false;
  std::atomic<int> owners{1};

  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable finished;
  std::int64_t round = 0;  // how many runs there were
  bool open = false;       // helpers may join the current run
  int joined = 0;          // helpers in the current run
  bool stopping = false;

  Task task = nullptr;
  void* context = nullptr;
  std::int64_t n_tasks = 0;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;

  void release() {
    if (owners.fetch_sub(1) == 1) delete this;
  }

  void take_tasks(int worker) {
    try {
      for (std::int64_t i = next.fetch_add(1); i < n_tasks; i = next.fetch_add(1)) {
        task(context, i, worker);
      }
    } catch (...) {
      next.store(n_tasks);  // nobody starts another task
      const std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void help(int worker) {
    std::int64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stopping || (open && round != seen); });
      if (stopping) return;
      seen = round;
      ++joined;
      lock.unlock();
      take_tasks(worker);
      lock.lock();
      if (--joined == 0) finished.notify_one();
    }
  }

  // Helpers are started when the first run needs them. Where the system refuses a thread, fewer do the work.
  void start() {
    started = true;
    for (int worker = 1; worker < size; ++worker) {
      owners.fetch_add(1);
      try {
        std::thread([this, worker] {
          help(worker);
          release();
        }).detach();
      } catch (...) {  // std::system_error, or no memory for it
        owners.fetch_sub(1);
        return;
      }
    }
  }
};

Team::Team(int n_threads, double flops) : state_(new State) {
  const double fed = std::min(flops / kFlopsPerThread, 1e6);
  state_->size = std::max(1, std::min(n_threads, static_cast<int>(fed)));
}

Team::~Team() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  state_->release();
}

int Team::size() const { return state_->size; }

void Team::run(std::int64_t n_tasks, double flops, Task task, void* context) {
  State& s = *state_;
  if (s.size == 1 || n_tasks < 2 || flops < kFlopsPerThread) {
    for (std::int64_t i = 0; i < n_tasks; ++i) task(context, i, 0);
    return;
  }
  if (!s.started) s.start();
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    s.task = task;
    s.context = context;
    s.n_tasks = n_tasks;
    s.next.store(0);
    s.open = true;
    ++s.round;
  }
  s.wake.notify_all();
  s.take_tasks(0);
  std::unique_lock<std::mutex> lock(s.mutex);
  s.open = false;
  s.finished.wait(lock, [&] { return s.joined == 0; });
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace gmil
