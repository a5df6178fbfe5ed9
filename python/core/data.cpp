// Dataset and its iterator over flat elements; the package tandem.data puts them into nests.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <mutex>

#include <tandem/data/records.hpp>
#include <tandem/host_call.hpp>
#include <tandem/strings.hpp>

#include "data.hpp"
#include "data/random.hpp"
#include "data/walk.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::python {
namespace {

using data::Element;

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self))
    for (const auto& f : nb::inst_ptr<Pipeline>(self)->callbacks) Py_VISIT(f->get());
  return 0;
}
int clear(PyObject* self) {
  if (nb::inst_ready(self))
    for (const auto& f : nb::inst_ptr<Pipeline>(self)->callbacks) f->clear();
  return 0;
}
PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

// --- types -------------------------------------------------------------------------------------------------------------------------------

// (dtype, dims): an extent that varies is None.
std::vector<Spec> specs_of(nb::handle list) {
  std::vector<Spec> specs;
  for (nb::handle pair : nb::borrow<nb::sequence>(list)) {
    const nb::tuple t = nb::cast<nb::tuple>(pair);
    const nb::object dtype = t[0];
    Dims dims = as_dims(nb::handle(t[1]).ptr());
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis].is(-1)) dims[axis] = Dim::symbol(cat("u", specs.size(), "_", axis));
    const bool is_text = dtype.is(from_dtype(kString));
    specs.push_back({is_text ? kString : as_dtype(dtype.ptr()), std::move(dims)});
  }
  return specs;
}

nb::object from_specs(const std::optional<std::vector<Spec>>& specs) {
  if (!specs) return nb::none();
  nb::list list;
  for (const Spec& s : *specs) {
    nb::list dims;
    for (const Dim& d : s.dims) dims.append(d.is_const() ? nb::object(nb::int_(d.value())) : nb::none());
    list.append(nb::make_tuple(from_dtype(s.dtype), nb::tuple(dims)));
  }
  return list;
}

// --- functions of Python's ---------------------------------------------------------------------------------------------------------------

using Function = std::shared_ptr<Callback>;
Function function(nb::handle f) { return std::make_shared<Callback>(f); }

nb::object call(const Callback& f, const Element& element) { return f(from_tensors(element)); }

// A number or a truth that a Python function gives for an element.
template <class T> std::function<T(const Element&)> number_function(Function f) {
  return [f = std::move(f)](const Element& e) {
    GilHeld gil;
    return to_tensor(call(*f, e).ptr()).reshape({}).item<T>();
  };
}

// The Python object of a Dataset that a function gave, for as long as its description is used.
struct Kept {
  Kept(std::shared_ptr<const data::Node> n, nb::handle o) : node(std::move(n)), object(o) {}
  const std::shared_ptr<const data::Node> node;
  const Callback object;
};

std::function<data::Dataset(const Element&)> dataset_function(Function f) {
  return [f = std::move(f)](const Element& e) {
    GilHeld gil;
    const nb::object made = call(*f, e);
    const auto kept = std::make_shared<const Kept>(nb::cast<const Pipeline&>(made.attr("_pipe")).dataset.node(), made);
    return data::Dataset(std::shared_ptr<const data::Node>(kept, kept->node.get()));
  };
}

// `start` gives a function without arguments that gives the components of the next element, or None.
std::function<data::Dataset::Generate()> generator_function(Function start) {
  return [start = std::move(start)]() -> data::Dataset::Generate {
    GilHeld gil;
    return [next = function((*start)())](Element& element) {
      GilHeld inner;
      const nb::object made = (*next)();
      if (made.is_none()) return false;
      element = to_tensors(made.ptr());
      return true;
    };
  };
}

// --- iterators ---------------------------------------------------------------------------------------------------------------------------

// One walk over a dataset. Python's iterators hold one; a compiled function names one by its number, which is a tensor.
class Walk {
 public:
  explicit Walk(const data::Dataset& d) : iterator_(d.iterate()) {}
  void stop() {
    std::lock_guard guard(mutex_);
    iterator_.reset();
  }
  template <class F> auto use(F f) {
    std::lock_guard guard(mutex_);
    if (!iterator_) user_error("this iterator was stopped, since the program ends");
    return f(*iterator_);
  }
  bool next(Element& element) {
    return use([&](data::Iterator& i) {
      const frontend::EagerScope eager;  // a function that is being traced outside has no part in it
      return i.next(element);
    });
  }

 private:
  std::mutex mutex_;
  std::optional<data::Iterator> iterator_;
};

// All walks by number. Those that a compiled function began belong to this list until the function ends them; a call of a function that
// ends by an exception ends what it began.
class Walks {
 public:
  static int64_t add(const std::shared_ptr<Walk>& walk) {
    std::lock_guard guard(mutex());
    const int64_t number = ++newest();
    all().emplace(number, walk);
    return number;
  }
  static void remove(int64_t number) {
    std::lock_guard guard(mutex());
    all().erase(number);
  }
  static std::shared_ptr<Walk> find(int64_t number) {
    std::lock_guard guard(mutex());
    const auto found = all().find(number);
    auto walk = found == all().end() ? nullptr : found->second.lock();
    if (!walk)
      user_error("iterator ", number, " is gone\n  hint: its function has ended; make an iterator inside of the function that uses it");
    return walk;
  }

  // Without Python's lock: a walk's threads may wait for it.
  static int64_t begin(const data::Dataset& d) {
    auto walk = std::make_shared<Walk>(d);
    const int64_t number = add(walk);
    begun().emplace_back(number, std::move(walk));
    return number;
  }
  static void end(int64_t number) {
    std::erase_if(begun(), [&](const auto& entry) { return entry.first == number; });
    remove(number);
  }
  static size_t begun_count() { return begun().size(); }
  static void end_since(size_t count) {
    while (begun().size() > count) end(begun().back().first);
  }

  static void stop_all() {
    std::vector<std::shared_ptr<Walk>> now;
    {
      std::lock_guard guard(mutex());
      for (const auto& [number, walk] : all()) now.push_back(walk.lock());
    }
    for (const auto& walk : now)
      if (walk) walk->stop();
  }

 private:
  static std::mutex& mutex() {
    static auto& m = *new std::mutex;
    return m;
  }
  static std::map<int64_t, std::weak_ptr<Walk>>& all() {
    static auto& walks = *new std::map<int64_t, std::weak_ptr<Walk>>;
    return walks;
  }
  static int64_t& newest() {
    static int64_t number = 0;
    return number;
  }
  static std::vector<std::pair<int64_t, std::shared_ptr<Walk>>>& begun() {
    thread_local std::vector<std::pair<int64_t, std::shared_ptr<Walk>>> walks;
    return walks;
  }
};

class PipelineIterator {
 public:
  explicit PipelineIterator(const data::Dataset& d) : walk_(std::make_shared<Walk>(d)), number_(Walks::add(walk_)) {}
  // Its threads may wait for Python's lock.
  ~PipelineIterator() {
    GilReleased release;
    Walks::remove(number_);
    walk_.reset();
  }
  PipelineIterator(const PipelineIterator&) = delete;
  PipelineIterator& operator=(const PipelineIterator&) = delete;

  int64_t number() const { return number_; }
  template <class F> auto use(F f) {
    const PythonCall call;
    GilReleased release;
    return walk_->use(f);
  }
  nb::object next() {
    Element element;
    const auto next = [&] {
      const PythonCall call;
      GilReleased release;
      return walk_->next(element);
    };
    return next() ? nb::object(from_tensors(element)) : nb::none();
  }
  nb::bytes save() {
    const std::string state = use([](data::Iterator& i) { return i.save(); });
    return nb::bytes(state.data(), state.size());
  }
  void restore(const nb::bytes& state) {
    const std::string text(state.c_str(), state.size());
    use([&](data::Iterator& i) { return i.restore(text), 0; });
  }
  std::string explain() {
    return use([](data::Iterator& i) { return i.explain(); });
  }

 private:
  std::shared_ptr<Walk> walk_;
  const int64_t number_;
};

// --- walks inside of compiled functions: host calls without Python -------------------------------------------------------------------

Tensor begin_walk(nb::handle pipeline) {
  // Whoever holds a dataset holds its Python object too.
  const auto kept = std::make_shared<Callback>(pipeline);
  keep_for_traced_function(kept);
  const FlatFunction begin = [kept, dataset = nb::cast<const Pipeline&>(pipeline).dataset](const std::vector<Tensor>&) {
    return std::vector<Tensor>{Tensor::scalar<int64_t>(Walks::begin(dataset))};
  };
  const PythonCall call;
  GilReleased release;
  return host_call(begin, {}, {{DType::I64, {}}}, "iterate", std::source_location()).front();
}

void end_walk(nb::handle number) {
  const Tensor in = to_tensor(number.ptr());
  const FlatFunction end = [](const std::vector<Tensor>& inputs) {
    Walks::end(inputs[0].item<int64_t>());
    return std::vector<Tensor>();
  };
  const PythonCall call;
  GilReleased release;
  host_call(end, {in}, {}, "end of iteration", std::source_location());
}

// [whether there is one, components of the next element...]; zeros behind the end, or an OutOfRange error there.
nb::list next_of_walk(nb::handle number, nb::handle specs, bool must_exist, nb::handle keeps) {
  const Tensor in = to_tensor(number.ptr());
  std::vector<Spec> declared{{DType::Bool, {}}};
  for (Spec& s : specs_of(specs)) declared.push_back(std::move(s));
  const auto kept = std::make_shared<Callback>(keeps);
  keep_for_traced_function(kept);
  const FlatFunction next = [kept, declared, must_exist](const std::vector<Tensor>& inputs) {
    Element element;
    const bool has_element = Walks::find(inputs[0].item<int64_t>())->next(element);
    if (!has_element && must_exist) user_error(ErrorCode::OutOfRange, "End of sequence");
    if (!has_element) element.clear();  // a stage may have filled a part of it
    if (!has_element)
      for (size_t i = 1; i < declared.size(); ++i) element.push_back(Tensor::zeros(declared[i].dims, declared[i].dtype));
    element.insert(element.begin(), Tensor::scalar<bool>(has_element));
    return element;
  };
  const PythonCall call;
  std::vector<Tensor> found;
  {
    GilReleased release;
    found = host_call(next, {in}, declared, "next element", std::source_location());
  }
  return from_tensors(found);
}

// --- sources and stages ------------------------------------------------------------------------------------------------------------------

// Makes a stage without Python's lock: what it calls of Python's takes it itself.
template <class F> Pipeline made(F f, std::vector<Function> callbacks = {}) {
  const PythonCall call;
  GilReleased release;
  return {f(), std::move(callbacks)};
}

data::Compression compression_of(const std::string& name) {
  if (name.empty()) return data::Compression::None;
  if (name == "GZIP") return data::Compression::Gzip;
  if (name == "ZLIB") return data::Compression::Zlib;
  user_error("the compression '", name, "' is none of '', 'GZIP' and 'ZLIB'");
}

// Sources of bytes as scalars of strings.
data::Dataset as_strings(const data::Dataset& bytes) {
  return bytes.map_callback_flat([](const std::vector<Tensor>& in) { return std::vector<Tensor>{from_string(data::to_text(in.at(0)))}; },
                                 {.specs = {{kString, {}}}, .name = "strings"});
}

Tensor as_string_rows(const std::vector<std::string>& all) { return from_strings(all, {static_cast<int64_t>(all.size())}); }

data::PaddedOptions padded_options(bool drop_remainder, nb::handle shapes, nb::handle values, bool to_boundary) {
  data::PaddedOptions o{.drop_remainder = drop_remainder};
  if (!shapes.is_none())
    for (nb::handle s : nb::borrow<nb::sequence>(shapes)) o.shapes.push_back(as_dims(s.ptr()));
  if (!values.is_none()) o.values = to_tensors(values.ptr());
  o.pad_to_bucket_boundary = to_boundary;
  return o;
}

std::vector<data::Dataset> datasets_of(nb::handle list) {
  std::vector<data::Dataset> all;
  for (nb::handle d : nb::borrow<nb::sequence>(list)) all.push_back(nb::cast<const Pipeline&>(d).dataset);
  return all;
}

data::Dataset random_numbers(std::optional<uint64_t> seed, bool again) {
  const uint64_t first = seed.value_or(data::Random::fresh_seed());
  const auto walks = std::make_shared<std::atomic<uint64_t>>(0);
  return data::Dataset::generator(
      [=]() -> data::Dataset::Generate {
        return [random = data::Random::of({first, again ? walks->fetch_add(1) : 0, 0})](Element& e) mutable {
          e.assign(1, Tensor::scalar<int64_t>(static_cast<int64_t>(random.bits() >> 32)));
          return true;
        };
      },
      {{DType::I64, {}}}, data::kInfinite);
}

void add_sources(nb::class_<Pipeline>& c) {
  using D = data::Dataset;
  c.def_static("from_slices", [](nb::handle tensors) {
    std::vector<Tensor> t = to_tensors(tensors.ptr());
    return made([&] { return D::from_slices(std::move(t)); });
  });
  c.def_static("from_tensors", [](nb::handle tensors) {
    Element t = to_tensors(tensors.ptr());
    return made([&] { return D::from_tensors(std::move(t)); });
  });
  c.def_static("range", [](int64_t start, int64_t stop, int64_t step) { return made([&] { return D::range(start, stop, step); }); });
  c.def_static(
      "random", [](std::optional<uint64_t> seed, bool again) { return made([&] { return random_numbers(seed, again); }); },
      nb::arg("seed").none(), nb::arg("again"));
  c.def_static(
      "generator",
      [](nb::handle start, nb::handle specs, int64_t cardinality) {
        const Function f = function(start);
        if (specs.is_none()) return made([&] { return D::generator_untyped(generator_function(f), cardinality); }, {f});
        const std::vector<Spec> s = specs_of(specs);
        return made([&] { return D::generator(generator_function(f), s, cardinality); }, {f});
      },
      nb::arg("start"), nb::arg("specs").none(), nb::arg("cardinality"));
  c.def_static(
      "list_files",
      [](const std::vector<std::string>& patterns, bool shuffle, std::optional<uint64_t> seed) {
        return made([&] {
          std::vector<std::string> names;
          for (const std::string& p : patterns) {
            data::Iterator files = D::list_files(p).iterate();
            for (Element e; files.next(e);) names.push_back(data::to_text(e[0]));
          }
          if (names.empty()) user_error("list_files: no patterns");
          const auto count = static_cast<int64_t>(names.size());
          const D all = D::from_slices({as_string_rows(names)});
          return shuffle ? all.shuffle(count, {.seed = seed}) : all;
        });
      },
      nb::arg("patterns"), nb::arg("shuffle"), nb::arg("seed").none());
  c.def_static("text_lines", [](std::vector<std::string> files, const std::string& compression, size_t buffer) {
    return made([&] { return as_strings(D::text_lines(std::move(files), {compression_of(compression), buffer})); });
  });
  c.def_static("tfrecords", [](std::vector<std::string> files, const std::string& compression, size_t buffer) {
    return made([&] { return as_strings(D::tfrecords(std::move(files), {compression_of(compression), buffer})); });
  });
  c.def_static("fixed_length_records",
               [](std::vector<std::string> files, int64_t record, int64_t header, int64_t footer, const std::string& compression) {
                 return made([&] {
                   return as_strings(D::fixed_length_records(std::move(files), record, {header, footer, compression_of(compression)}));
                 });
               });
  c.def_static("zip", [](nb::handle list) {
    const std::vector<D> all = datasets_of(list);
    return made([&] { return D::zip(all); });
  });
  c.def_static(
      "sample_from",
      [](nb::handle list, std::vector<double> weights, std::optional<uint64_t> seed, bool stop_on_empty) {
        const std::vector<D> all = datasets_of(list);
        return made([&] { return D::sample_from(all, {std::move(weights), seed, stop_on_empty}); });
      },
      nb::arg("datasets"), nb::arg("weights"), nb::arg("seed").none(), nb::arg("stop_on_empty"));
  c.def_static("choose_from", [](nb::handle list, const Pipeline& choice, bool stop_on_empty) {
    const std::vector<D> all = datasets_of(list);
    return made([&] { return D::choose_from(all, choice.dataset, stop_on_empty); });
  });
}

void add_functional_stages(nb::class_<Pipeline>& c) {
  c.def(
      "map",
      [](const Pipeline& p, nb::handle body, int64_t calls, bool deterministic) {
        const Function f = function(body);
        return made([&] { return p.dataset.map_flat(flat_function(f), {.parallel_calls = calls, .deterministic = deterministic}); }, {f});
      },
      "Traced once, here, when the types of the elements are known.");
  c.def(
      "map_callback",
      [](const Pipeline& p, nb::handle body, int64_t calls, bool deterministic, nb::handle specs, const std::string& name) {
        const Function f = function(body);
        data::CallbackOptions o{.parallel_calls = calls, .deterministic = deterministic, .name = name};
        if (!specs.is_none()) o.specs = specs_of(specs);
        return made([&] { return p.dataset.map_callback_flat(flat_function(f), std::move(o)); }, {f});
      },
      nb::arg("f"), nb::arg("calls"), nb::arg("deterministic"), nb::arg("specs").none(), nb::arg("name") = "map_callback");
  c.def("filter", [](const Pipeline& p, nb::handle body, bool traced) {
    const Function f = function(body);
    return made([&] { return traced ? p.dataset.filter_flat(flat_function(f)) : p.dataset.filter_callback(number_function<bool>(f)); },
                {f});
  });
  c.def("take_while", [](const Pipeline& p, nb::handle body, bool traced) {
    const Function f = function(body);
    return made(
        [&] { return traced ? p.dataset.take_while_flat(flat_function(f)) : p.dataset.take_while_callback(number_function<bool>(f)); },
        {f});
  });
  c.def("scan", [](const Pipeline& p, nb::handle initial, nb::handle body) {
    const Function f = function(body);
    Element state = to_tensors(initial.ptr());
    return made([&] { return p.dataset.scan(std::move(state), flat_function(f)); }, {f});
  });
  c.def(
      "flat_map",
      [](const Pipeline& p, nb::handle body, nb::handle specs) {
        const Function f = function(body);
        const std::vector<Spec> s = specs.is_none() ? std::vector<Spec>{} : specs_of(specs);
        return made([&] { return p.dataset.flat_map(dataset_function(f), s); }, {f});
      },
      nb::arg("f"), nb::arg("specs").none());
  c.def(
      "interleave",
      [](const Pipeline& p, nb::handle body, int64_t cycle, int64_t block, int64_t calls, bool deterministic, nb::handle specs) {
        const Function f = function(body);
        data::InterleaveOptions o{cycle, block, calls, deterministic};
        if (!specs.is_none()) o.specs = specs_of(specs);
        return made([&] { return p.dataset.interleave(dataset_function(f), std::move(o)); }, {f});
      },
      nb::arg("f"), nb::arg("cycle"), nb::arg("block"), nb::arg("calls"), nb::arg("deterministic"), nb::arg("specs").none());
  // With `traced`, the length is compiled and Python is not asked for each element.
  c.def(
      "bucket",
      [](const Pipeline& p, nb::handle body, bool traced, std::vector<int64_t> boundaries, std::vector<int64_t> sizes, bool drop,
         nb::handle shapes, nb::handle values, bool to_boundary) {
        const Function f = function(body);
        data::PaddedOptions o = padded_options(drop, shapes, values, to_boundary);
        return made(
            [&] {
              std::function<int64_t(const Element&)> length = number_function<int64_t>(f);
              if (traced)
                length = [compiled = FlatCallable(flat_function(f), {.name = "length", .specs = p.dataset.specs()})](const Element& e) {
                  return compiled(e).at(0).reshape({}).item<int64_t>();
                };
              return p.dataset.bucket_by_sequence_length(std::move(length), std::move(boundaries), std::move(sizes), std::move(o));
            },
            {f});
      },
      nb::arg("length"), nb::arg("traced"), nb::arg("boundaries"), nb::arg("sizes"), nb::arg("drop"), nb::arg("shapes").none(),
      nb::arg("values").none(), nb::arg("to_boundary"));
}

void add_stages(nb::class_<Pipeline>& c) {
  c.def("batch", [](const Pipeline& p, int64_t size, bool drop, int64_t calls, bool deterministic) {
    return made([&] { return p.dataset.batch(size, data::BatchOptions{drop, calls, deterministic, true}); });
  });
  c.def(
      "padded_batch",
      [](const Pipeline& p, int64_t size, bool drop, nb::handle shapes, nb::handle values) {
        data::PaddedOptions o = padded_options(drop, shapes, values, false);
        return made([&] { return p.dataset.padded_batch(size, std::move(o)); });
      },
      nb::arg("size"), nb::arg("drop"), nb::arg("shapes").none(), nb::arg("values").none());
  c.def(
      "shuffle",
      [](const Pipeline& p, int64_t size, std::optional<uint64_t> seed, bool again) {
        return made([&] { return p.dataset.shuffle(size, {seed, again}); });
      },
      nb::arg("size"), nb::arg("seed").none(), nb::arg("again"));
  c.def("window", [](const Pipeline& p, int64_t size, int64_t shift, int64_t stride, bool drop) {
    return made([&] { return p.dataset.window(size, {shift, stride, drop}); });
  });
  c.def("rebatch", [](const Pipeline& p, int64_t size, bool drop) { return made([&] { return p.dataset.rebatch(size, drop); }); });
  c.def("enumerate", [](const Pipeline& p, int64_t start) { return made([&] { return p.dataset.enumerate(start); }); });
  c.def("unique", [](const Pipeline& p) { return made([&] { return p.dataset.unique(); }); });
  c.def("unbatch", [](const Pipeline& p) { return made([&] { return p.dataset.unbatch(); }); });
  c.def("repeat", [](const Pipeline& p, int64_t count) { return made([&] { return p.dataset.repeat(count); }); });
  c.def("take", [](const Pipeline& p, int64_t count) { return made([&] { return p.dataset.take(count); }); });
  c.def("skip", [](const Pipeline& p, int64_t count) { return made([&] { return p.dataset.skip(count); }); });
  c.def("shard", [](const Pipeline& p, int64_t shards, int64_t index) { return made([&] { return p.dataset.shard(shards, index); }); });
  c.def("concatenate", [](const Pipeline& p, const Pipeline& after) { return made([&] { return p.dataset.concatenate(after.dataset); }); });
  c.def("cache", [](const Pipeline& p, const std::string& file) {
    return made([&] { return file.empty() ? p.dataset.cache() : p.dataset.cache(file); });
  });
  c.def("snapshot", [](const Pipeline& p, const std::string& folder) { return made([&] { return p.dataset.snapshot(folder); }); });
  c.def("prefetch", [](const Pipeline& p, int64_t elements) { return made([&] { return p.dataset.prefetch(elements); }); });
  c.def("ignore_errors", [](const Pipeline& p, bool log) { return made([&] { return p.dataset.ignore_errors(log); }); });
  c.def("assert_cardinality", [](const Pipeline& p, int64_t count) { return made([&] { return p.dataset.assert_cardinality(count); }); });
  c.def(
      "options",
      [](const Pipeline& p, std::optional<bool> deterministic, std::optional<bool> autotune, std::optional<double> cpu_share,
         std::optional<size_t> ram_bytes) {
        return made([&] { return p.dataset.options({cpu_share, ram_bytes, deterministic, autotune}); });
      },
      nb::arg("deterministic").none(), nb::arg("autotune").none(), nb::arg("cpu_share").none(), nb::arg("ram_bytes").none());
}

}  // namespace

WalkScope::WalkScope() : before_(Walks::begun_count()) {}
WalkScope::~WalkScope() {
  if (Walks::begun_count() == before_) return;
  GilReleased release;
  Walks::end_since(before_);
}

void add_data(nb::module_& m) {
  nb::class_<Pipeline> pipeline(m, "Dataset", nb::type_slots(slots), "A description of flat elements. Use tandem.data.Dataset instead.");
  add_sources(pipeline);
  add_functional_stages(pipeline);
  add_stages(pipeline);
  pipeline.def(
      "specs",
      [](const Pipeline& p) {
        std::optional<std::vector<Spec>> specs;
        {
          GilReleased release;
          specs = p.dataset.known_specs();
        }
        return from_specs(specs);
      },
      "(dtype, dims) of each component; None when only running it would tell.");
  pipeline.def("cardinality", [](const Pipeline& p) { return p.dataset.cardinality(); });
  pipeline.def("str", [](const Pipeline& p) { return p.dataset.str(); });
  pipeline.def("iterate", [](const Pipeline& p) {
    GilReleased release;
    return std::make_unique<PipelineIterator>(p.dataset);
  });

  nb::class_<PipelineIterator>(m, "DatasetIterator")
      .def("next", &PipelineIterator::next, "The components of the next element, or None.")
      .def("save", &PipelineIterator::save)
      .def("restore", &PipelineIterator::restore)
      .def("explain", &PipelineIterator::explain)
      .def_prop_ro("number", &PipelineIterator::number, "By which compiled functions name it.");
  // Before the interpreter ends: no thread may ask for its lock afterwards.
  m.def("stop_iterators", [] {
    GilReleased release;
    Walks::stop_all();
  });
  m.def("begin_walk", begin_walk, "In a trace: the number of a new walk over a Dataset each time this place is reached.");
  m.def("end_walk", end_walk);
  m.def("next_of_walk", next_of_walk, nb::arg("number"), nb::arg("specs"), nb::arg("must_exist"), nb::arg("keeps").none() = nb::none(),
        "In a trace: [whether there is a next element, its components...]. `keeps` lives as long as the function.");

  nb::class_<data::RecordWriter>(m, "RecordWriter")
      .def("__init__", [](data::RecordWriter* self, const std::string& file,
                          const std::string& compression) { new (self) data::RecordWriter(file, compression_of(compression)); })
      .def("write", [](data::RecordWriter& w, nb::bytes record) { w.write({record.c_str(), record.size()}); })
      .def("close", &data::RecordWriter::close);
}

}  // namespace tandem::python
