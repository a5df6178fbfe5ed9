// Ahead: elements that are made before they are asked for, by one thread or several. The one class with threads: prefetch, parallel map,
// batch and interleave are made of it. Threads make what the budget has room for. When it has none, or nobody knows yet how large an
// element is, the reader makes one itself and keeps nothing: so queues never wait for each other's bytes, and none needs more than its
// share.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/context.hpp"
#include "data/elements.hpp"
#include "data/walk.hpp"

namespace tandem::data {

class Ahead {
 public:
  struct Work {
    std::function<bool(Element&)> pull;     // one thread at a time; false at the end
    std::function<void(Element&)> compute;  // any number of threads; changes the element in place; empty: nothing to do
    bool deterministic = true;              // elements leave in the order in which they were pulled
  };
  // The numbers of threads and of elements are stage.parallel and stage.capacity, looked at whenever something changes. `link` ends the
  // waiting of everybody; what `pull` asks must have been made with token().
  Ahead(Stage& stage, Context& context, const std::stop_token& link);
  ~Ahead();  // stops, also in the middle of waiting, and joins
  std::stop_token token() const { return stop_.get_token(); }

  void start(Work work) { work_ = std::move(work); }  // threads begin with the first next()
  bool next(Element& element);
  bool is_ready();  // next() would not wait

  // Nothing runs while `inputs` is called; elements that are ready are part of the state.
  void save(Writer& w, const std::function<void()>& inputs);
  void restore(Reader& r, const std::optional<Specs>& declared, const std::function<void()>& inputs);

 private:
  struct Result {
    Element element;
    std::exception_ptr error;
    size_t bytes = 0;
  };
  // What one thread makes in one go: several elements, where one is too little work to be handed over alone.
  struct Block {
    int64_t ticket = 0;
    std::vector<Result> results;
    size_t taken = 0;  // so many are gone
    size_t left() const { return results.size() - taken; }
  };
  struct Link {  // ends this when what it is a part of ends
    std::stop_source& stop;
    void operator()() const { stop.request_stop(); }
  };

  struct Grant {
    int64_t count = 0;  // elements
    size_t bytes = 0;   // taken from the budget: what they will probably have
  };
  void run(int64_t worker);
  Grant may_pull(int64_t worker);  // with the lock, as the next two
  bool must_make() const;          // nobody else will: the reader has to
  Block make(std::unique_lock<std::mutex>& lock, int64_t count);
  bool pull(Block& block, int64_t count);
  void compute(Block& block);
  void learn_size(size_t bytes);
  void put(Block block, size_t reserved);
  bool front_is_ready() const;
  bool is_over() const { return ended_ && running_ == 0 && ready_.empty(); }
  void add_workers();

  Stage& stage_;
  Context& context_;
  std::stop_source stop_;
  std::stop_callback<Link> link_;
  Work work_;
  Block front_;  // the reader's own

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Block> ready_;  // by ticket when deterministic
  int64_t ready_count_ = 0;  // elements in it
  int64_t next_ticket_ = 0, next_out_ = 0;
  int64_t running_ = 0;  // elements that are pulled and not ready yet
  bool pulling_ = false, paused_ = false, ended_ = false, starved_ = false, reader_waits_ = false;
  size_t reserved_ = 0;  // bytes taken for what is running
  std::vector<std::jthread> workers_;
};

// Sets a stage's numbers from what the user asked for, unless an earlier walk of this iterator did and tuned them since.
void set_parallel(Stage& stage, const Context& context, int64_t asked);
void set_capacity(Stage& stage, const Context& context, int64_t asked);  // 0: a multiple of the threads; call it last
int64_t capacity(const Stage& stage);

}  // namespace tandem::data
