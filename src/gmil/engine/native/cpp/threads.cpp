#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace gmil {
namespace {

// How long a kernel works before it asks whether it should stop.
constexpr std::chrono::milliseconds kBetweenChecks{100};

std::atomic<InterruptCheck> interrupt_check{nullptr};

struct Helper {
  std::thread thread;
  std::shared_ptr<std::atomic<bool>> has_ended;
};

// Helpers whose team is gone. Nobody waits for them: on a busy machine it may take milliseconds until they see it.
class Leaving {
 public:
  void add(std::vector<Helper>& helpers) {
    const std::lock_guard<std::mutex> lock(mutex_);
    join_ended();
    for (Helper& helper : helpers) helpers_.push_back(std::move(helper));
  }

  void join_all() {
    std::vector<Helper> all;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      all.swap(helpers_);
    }
    for (Helper& helper : all) helper.thread.join();
  }

 private:
  void join_ended() {
    const auto stays = [](const Helper& helper) { return !helper.has_ended->load(); };
    const auto ended = std::stable_partition(helpers_.begin(), helpers_.end(), stays);
    for (auto helper = ended; helper != helpers_.end(); ++helper) helper->thread.join();
    helpers_.erase(ended, helpers_.end());
  }

  std::mutex mutex_;
  std::vector<Helper> helpers_;
};

// Never destroyed: at the end of the process the order of destructors is not known.
std::atomic<Leaving*> leaving{new Leaving};

}  // namespace

struct Team::State {
  std::vector<Helper> helpers;

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

  // Call `after` when a task is done. Where a task fails, nobody starts another.
  template <class After>
  void take_tasks(int worker, const After& after) {
    try {
      for (std::int64_t i = next.fetch_add(1); i < n_tasks; i = next.fetch_add(1)) {
        task(context, i, worker);
        after();
      }
    } catch (...) {
      next.store(n_tasks);
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
      take_tasks(worker, [] {});
      lock.lock();
      if (--joined == 0) finished.notify_one();
    }
  }

  // Where the system refuses a thread, fewer do the work.
  static void start(const std::shared_ptr<State>& state, int size) {
    try {
      state->helpers.reserve(static_cast<std::size_t>(size));
      for (int worker = 1; worker < size; ++worker) {
        const auto has_ended = std::make_shared<std::atomic<bool>>(false);
        std::thread thread([state, worker, has_ended] {
          state->help(worker);
          has_ended->store(true);
        });
        state->helpers.push_back({std::move(thread), has_ended});
      }
    } catch (...) {  // std::system_error, or no memory for it
    }
  }
};

void join_helpers() { leaving.load()->join_all(); }

void forget_helpers() { leaving.store(new Leaving); }

void set_interrupt_check(InterruptCheck check) { interrupt_check.store(check); }

Team::Team(int n_threads, double flops) : next_check_(Clock::now() + kBetweenChecks) {
  const double fed = std::min(flops / kFlopsPerThread, 1e6);
  size_ = std::max(1, std::min(n_threads, static_cast<int>(fed)));
}

Team::~Team() {
  if (!state_) return;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  leaving.load()->add(state_->helpers);
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
  if (!state_) {
    state_ = std::make_shared<State>();
    State::start(state_, size_);
  }
  State& s = *state_;
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
  s.take_tasks(0, [this] { stop_if_interrupted(); });
  std::unique_lock<std::mutex> lock(s.mutex);
  s.open = false;
  s.finished.wait(lock, [&] { return s.joined == 0; });
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace gmil
