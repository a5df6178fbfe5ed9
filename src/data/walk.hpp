// Flow: the running state of one stage, made anew for each walk over it. Items are elements or, where a stage only chooses among rows of
// tensors in memory, their indices: such stages are written once for both, and no data moves until a batch is put together.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include <tandem/data.hpp>

#include "data/errors.hpp"
#include "data/stage.hpp"
#include "data/state.hpp"

namespace tandem::data {

template <class Item> class Flow {
 public:
  explicit Flow(Stage& stage) : stage_(stage) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // The next item; false at the end. Called by one thread at a time. Errors leave it with the stage's name and the number of the item.
  bool pull(Item& item);
  // Waits for what runs; then everything that decides which items come next.
  void save_to(Writer& w) {
    w.tag(stage_.name);
    w.put(number_);
    save(w);
  }
  void restore_from(Reader& r) {
    r.tag(stage_.name);
    number_ = r.count();
    restore(r);
  }
  Stage& stage() const { return stage_; }

 protected:
  virtual bool next(Item& item) = 0;
  virtual void save(Writer& w) = 0;
  virtual void restore(Reader& r) = 0;  // before the first pull

 private:
  Stage& stage_;
  int64_t number_ = 0;  // of the item that is asked for next
};

using IndexFlow = Flow<int64_t>;

template <> inline bool Flow<int64_t>::pull(int64_t& item) {
  if (!next(item)) return false;
  ++number_;
  stage_.count_index();
  return true;
}

template <> bool Flow<Element>::pull(Element& item);

}  // namespace tandem::data
