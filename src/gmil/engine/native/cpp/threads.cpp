#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gmil {
namespace {

// How long a kernel works before it asks whether it should stop.
constexpr std::chrono::milliseconds kBetweenChecks{100};

std::atomic<InterruptCheck> interrupt_check{nullptr};

// One call of Team::run; it lives on the stack of the caller, who waits until no helper is in it.
struct Run {
  Run(Team::Task run_task, void* its_context, std::int64_t n, int helpers)
      : task(run_task), context(its_context), n_tasks(n), most_helpers(helpers) {}

  const Team::Task task;
  void* const context;
  const std::int64_t n_tasks;
  const int most_helpers;
  std::atomic<std::int64_t> next{0};

  // Guarded by the mutex of the pool.
  int joined = 0;  // helpers that ever took part: each has a number of its own
  int inside = 0;  // helpers that take part now
  std::exception_ptr error;
  std::condition_variable left;
};

class Pool {
 public:
  // Let helpers take part in a run, until `close`.
  void open(Run& run) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      start(run.most_helpers);
      runs_.push_back(&run);
    }
    for (int i = 0; i < run.most_helpers; ++i) wake_.notify_one();
  }

  // Wait for the helpers in a run; those that have not come yet are not waited for.
  void close(Run& run) {
    std::unique_lock<std::mutex> lock(mutex_);
    runs_.erase(std::remove(runs_.begin(), runs_.end(), &run), runs_.end());
    run.left.wait(lock, [&] { return run.inside == 0; });
  }

  // Take tasks until there are none, or `go_on` says no. Where a task fails, nobody starts another.
  template <class GoOn>
  void take_tasks(Run& run, int worker, const GoOn& go_on) {
    try {
      for (std::int64_t i = run.next.fetch_add(1); i < run.n_tasks; i = run.next.fetch_add(1)) {
        run.task(run.context, i, worker);
        if (!go_on()) return;
      }
    } catch (...) {
      run.next.store(run.n_tasks);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!run.error) run.error = std::current_exception();
    }
  }

  void join() {
    std::vector<std::thread> leaving;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++generation_;
      leaving.swap(helpers_);
    }
    wake_.notify_all();
    for (std::thread& helper : leaving) helper.join();
  }

 private:
  // Where the system refuses a thread, fewer do the work.
  void start(int wanted) {
    try {
      while (static_cast<int>(helpers_.size()) < wanted) add_helper();
    } catch (...) {  // std::system_error, or no memory for it
    }
  }

  void add_helper() {
    const int generation = generation_.load();
    helpers_.emplace_back([this, generation] { help(generation); });
  }

  Run* run_with_room() const {
    const auto has_room = [](const Run* run) {
      return run->joined < run->most_helpers && run->next.load() < run->n_tasks;
    };
    const auto found = std::find_if(runs_.begin(), runs_.end(), has_room);
    return found == runs_.end() ? nullptr : *found;
  }

  void help(int generation) {
    const auto stays = [&] { return generation_.load() == generation; };
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      Run* run = nullptr;
      wake_.wait(lock, [&] { return !stays() || (run = run_with_room()) != nullptr; });
      if (!stays()) return;
      const int worker = ++run->joined;
      ++run->inside;
      lock.unlock();
      take_tasks(*run, worker, stays);
      lock.lock();
      if (--run->inside == 0) run->left.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> helpers_;
  std::vector<Run*> runs_;
  std::atomic<int> generation_{0};  // helpers of an earlier one leave
};

// Never destroyed: at the end of the process the order of destructors is not known.
std::atomic<Pool*> the_pool{new Pool};

}  // namespace

void join_helpers() { the_pool.load()->join(); }

void forget_helpers() { the_pool.store(new Pool); }

void set_interrupt_check(InterruptCheck check) { interrupt_check.store(check); }

Team::Team(int n_threads, double flops) : next_check_(Clock::now() + kBetweenChecks) {
  const double fed = std::min(flops / kFlopsPerThread, 1e6);
  size_ = std::max(1, std::min(n_threads, static_cast<int>(fed)));
}

void Team::stop_if_interrupted() {
  if (Clock::now() < next_check_) return;
  const InterruptCheck check = interrupt_check.load();
  if (check != nullptr && check() != 0) throw Interrupted();
  next_check_ = Clock::now() + kBetweenChecks;
}

void Team::run(std::int64_t n_tasks, double flops, Task task, void* context) {
  if (size_ == 1 || n_tasks < 2 || flops < kFlopsPerThread) {
    for (std::int64_t i = 0; i < n_tasks; ++i) {
      task(context, i, 0);
      stop_if_interrupted();
    }
    return;
  }
  Pool& pool = *the_pool.load();
  Run run(task, context, n_tasks, static_cast<int>(std::min<std::int64_t>(size_, n_tasks)) - 1);
  pool.open(run);
  pool.take_tasks(run, 0, [this] {
    stop_if_interrupted();
    return true;
  });
  pool.close(run);
  if (run.error) std::rethrow_exception(run.error);
}

}  // namespace gmil
