// Dataset: a description of elements that come one after the other, from memory, files or a callback, through stages. Iterator: one
// walk over it, with its threads, buffers and position. A description does nothing by itself and never changes; stages give a new one.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/data/options.hpp>
#include <tandem/error.hpp>
#include <tandem/function.hpp>
#include <tandem/structure.hpp>
#include <tandem/tensor.hpp>

namespace tandem::data {

class Node;                        // one source or stage; src/data/node.hpp
template <class Item> class Flow;  // one iterator's run of it; src/data/walk.hpp
using Walk = Flow<Element>;

// What a function of the user's own threw on its way through a pipeline, when it is none of our errors: the text says where, `original` is
// the exception itself.
class CallbackError : public UserError {
 public:
  CallbackError(const std::string& text, std::exception_ptr original) : UserError(text), original_(std::move(original)) {}
  const std::exception_ptr& original() const { return original_; }

 private:
  std::exception_ptr original_;
};

class Iterator {
 public:
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();  // cancels what runs and waits for it; possible at any moment

  // Replaces `element` by the next one; false at the end. An error carries the stage and the number of the element; the iterator can go on
  // after one, with the element that follows.
  bool next(Element& element);

  // The exact position, mid-epoch, shuffled or parallel; restored into an iterator of an equal Dataset it gives the elements that this
  // one would have given next. Elements that were made ahead are part of it.
  std::string save() const;
  void restore(std::string_view state);

  std::string explain() const;   // each stage with time, parallelism, queue fill and bytes, and which one is the bottleneck
  MemoryUse memory_use() const;  // of all elements that this iterator keeps ahead

 private:
  friend class Dataset;
  explicit Iterator(std::unique_ptr<Walk> walk);
  std::unique_ptr<Walk> walk_;
};

class Dataset {
 public:
  Dataset() = default;

  // --- sources in memory ---------------------------------------------------------------------------------------------------------
  static Dataset from_slices(std::vector<Tensor> tensors);              // along the first axis of each; elements are views
  static Dataset from_tensors(Element element);                         // one element
  static Dataset range(int64_t start, int64_t stop, int64_t step = 1);  // int64 scalars
  static Dataset range(int64_t stop) { return range(0, stop); }
  // `start` is called at the beginning of each walk and gives a function that replaces its argument by the next element, or returns false.
  using Generate = std::function<bool(Element&)>;
  static Dataset generator(std::function<Generate()> start, std::vector<Spec> specs, int64_t cardinality = kUnknown);
  static Dataset generator_untyped(std::function<Generate()> start, int64_t cardinality = kUnknown);  // only running it tells its types

  // --- sources in files ----------------------------------------------------------------------------------------------------------
  static Dataset list_files(const std::string& pattern,
                            ListOptions options = {});  // names, sorted or shuffled; * ? [..] and ** for folders
  static Dataset text_lines(std::vector<std::string> files, FileOptions options = {});  // uint8[n], without the end of line
  static Dataset tfrecords(std::vector<std::string> files, FileOptions options = {});   // uint8[n], checksums compared
  static Dataset fixed_length_records(std::vector<std::string> files, int64_t record_bytes, RecordOptions options = {});
  static Dataset csv(std::vector<std::string> files, CsvOptions options);             // one component a column
  static Dataset npy(const std::string& file);                                        // rows of a mapped .npy; elements are views
  static Dataset npz(const std::string& file, std::vector<std::string> names = {});   // rows of several arrays; default: all, in file order
  static Dataset image_folder(const std::string& folder, ImageOptions options = {});  // (uint8[h,w,c], int32 label), a class a subfolder

  // --- one element to one ----------------------------------------------------------------------------------------------------------
  // f(Tensor…) -> Tensor, tuple, … over the components, traced once and compiled. In front of batch() it is computed for the whole batch
  // at once, where that gives the same numbers. f must not depend on when it is called.
  template <class F> Dataset map(F f, MapOptions options = {}) const { return map_flat(flat("map", std::move(f)), std::move(options)); }
  // f(key, components…): `key` is a uint32[2] for random ops, another one for each element, the same for equal seeds.
  template <class F> Dataset map_random(uint64_t seed, F f, MapOptions options = {}) const {
    return map_random_flat(seed, flat("map_random", std::move(f)), std::move(options));
  }
  // f is any C++ code over numbers. With parallel calls it must be safe to call from several threads.
  template <class F> Dataset map_callback(F f, CallbackOptions options = {}) const {
    return map_callback_flat(flat("map_callback", std::move(f)), std::move(options));
  }
  template <class F> Dataset filter(F predicate) const {
    return filter_flat(flat("filter", std::move(predicate)));
  }  // traced, gives a bool scalar
  Dataset filter_callback(std::function<bool(const Element&)> predicate) const;
  // Up to the first element for which it is false.
  template <class F> Dataset take_while(F predicate) const { return take_while_flat(flat("take_while", std::move(predicate))); }
  Dataset take_while_callback(std::function<bool(const Element&)> predicate) const;
  Dataset assert_cardinality(int64_t count) const;  // believed before, checked at the end of a walk
  // step(state…, components…) -> (state…, outputs…), flat; traced. `state` has as many tensors as `initial`.
  Dataset scan(Element initial, FlatFunction step) const;
  Dataset enumerate(int64_t start = 0) const;  // an int64 scalar in front
  Dataset unique() const;                      // elements that did not come before, by their bytes

  // --- many to one and one to many ---------------------------------------------------------------------------------------------------
  Dataset batch(int64_t size, bool drop_remainder = false) const { return batch(size, BatchOptions{.drop_remainder = drop_remainder}); }
  Dataset batch(int64_t size, const BatchOptions& options) const;
  Dataset padded_batch(int64_t size, PaddedOptions options = {}) const;
  // Elements of like length together: bucket i holds lengths below boundaries[i], the last one the rest.
  Dataset bucket_by_sequence_length(std::function<int64_t(const Element&)> length, std::vector<int64_t> boundaries,
                                    std::vector<int64_t> batch_sizes, PaddedOptions options = {}) const;
  Dataset unbatch() const;
  Dataset rebatch(int64_t size, bool drop_remainder = false) const;
  Dataset window(int64_t size, WindowOptions options = {}) const;  // stacked: components get a leading axis of up to `size`
  Dataset flat_map(std::function<Dataset(const Element&)> f, std::vector<Spec> specs = {}) const;
  Dataset interleave(std::function<Dataset(const Element&)> f, InterleaveOptions options = {}) const;

  // --- which elements, in which order ----------------------------------------------------------------------------------------------
  // A buffer of `size` elements from which one is drawn at random. Without a seed every Dataset has another order.
  Dataset shuffle(int64_t size, ShuffleOptions options = {}) const;
  Dataset repeat(int64_t count = kInfinite) const;
  Dataset take(int64_t count) const;  // kInfinite: all
  Dataset skip(int64_t count) const;
  Dataset shard(int64_t shards, int64_t index) const;  // every element whose number is `index` modulo `shards`
  Dataset concatenate(const Dataset& after) const;
  static Dataset zip(const std::vector<Dataset>& inputs);  // components one behind the other; ends with the shortest
  static Dataset sample_from(const std::vector<Dataset>& inputs, SampleOptions options = {});
  static Dataset choose_from(const std::vector<Dataset>& inputs, const Dataset& choice, bool stop_on_empty = true);

  // --- keeping ---------------------------------------------------------------------------------------------------------------------
  Dataset cache() const;                              // in memory, shared by all iterators of this Dataset
  Dataset cache(const std::string& file) const;       // in a file that the first whole walk writes
  Dataset snapshot(const std::string& folder) const;  // like cache(file), in checksummed files that other pipelines and processes may read
  Dataset prefetch(int64_t elements = kAutotune) const;
  Dataset prefetch_to_device(int64_t elements = kAutotune) const;  // dense, in memory of the engine's device, before they are asked for

  // --- how it runs -----------------------------------------------------------------------------------------------------------------
  Dataset ignore_errors(bool log_warning = false) const;
  Dataset options(PipelineOptions options) const;  // of the iterators; later ones override, field by field

  std::vector<Spec> specs() const;  // of the components; symbols where extents vary; UserError when a callback's results are not declared
  std::optional<std::vector<Spec>> known_specs() const;  // the same; nothing instead of the error
  int64_t cardinality() const;                           // elements in one walk, kInfinite or kUnknown
  std::string str() const;                               // the stages and their options, one behind the other
  Iterator iterate() const;

  // The same over flat lists of tensors, for other front-ends.
  Dataset map_flat(FlatFunction f, MapOptions options) const;
  Dataset map_random_flat(uint64_t seed, FlatFunction f, MapOptions options) const;
  Dataset map_callback_flat(FlatFunction f, CallbackOptions options) const;
  Dataset filter_flat(FlatFunction predicate) const;
  Dataset take_while_flat(FlatFunction predicate) const;

  explicit Dataset(std::shared_ptr<const Node> node);
  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  // UserError unless a function with so many parameters (or `open`: at least so many) can be called with an element.
  static void expect_parameters(const char* stage, size_t takes, bool open, size_t given);
  template <class F> static FlatFunction flat(const char* stage, F f) {
    if constexpr (std::is_convertible_v<F, FlatFunction>)
      return FlatFunction(std::move(f));
    else
      return [stage, f = std::move(f)](const std::vector<Tensor>& in) mutable {
        using Arguments = typename CallableTraits<F>::Arguments;
        expect_parameters(stage, Structure<Arguments>::kFixed, Structure<Arguments>::kOpen, in.size());
        return apply_flat(f, unflatten<Arguments>(in));
      };
  }
  std::shared_ptr<const Node> node_;
};

}  // namespace tandem::data
