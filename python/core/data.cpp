// Dataset and its iterator over flat elements; the package tandem.data puts them into nests.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <set>

#include <tandem/data/records.hpp>
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

nb::object call(const Callback& f, const Element& element) {
  if (!f.get()) user_error("this function was collected by Python");
  nb::object result = nb::steal(PyObject_CallOneArg(f.get(), from_tensors(element).ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// A number or a truth that a Python function gives for an element.
template <class T> std::function<T(const Element&)> number_function(Function f) {
  return [f = std::move(f)](const Element& e) {
    nb::gil_scoped_acquire gil;
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
    nb::gil_scoped_acquire gil;
    const nb::object made = call(*f, e);
    const auto kept = std::make_shared<const Kept>(nb::cast<const Pipeline&>(made.attr("_pipe")).dataset.node(), made);
    return data::Dataset(std::shared_ptr<const data::Node>(kept, kept->node.get()));
  };
}

// `start` gives a function without arguments that gives the components of the next element, or None.
std::function<data::Dataset::Generate()> generator_function(Function start) {
  return [start = std::move(start)]() -> data::Dataset::Generate {
    nb::gil_scoped_acquire gil;
    if (!start->get()) user_error("this generator was collected by Python");
    const nb::object next = nb::steal(PyObject_CallNoArgs(start->get()));
    if (!next.is_valid()) throw nb::python_error();
    return [next = function(next)](Element& element) {
      nb::gil_scoped_acquire inner;
      const nb::object made = nb::steal(PyObject_CallNoArgs(next->get()));
      if (!made.is_valid()) throw nb::python_error();
      if (made.is_none()) return false;
      element = to_tensors(made.ptr());
      return true;
    };
  };
}

// --- iterators ---------------------------------------------------------------------------------------------------------------------------

void poll_signals() {
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

struct Polling {
  Polling() { data::reader_poll = poll_signals; }
  ~Polling() { data::reader_poll = nullptr; }
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
};

class PipelineIterator {
 public:
  explicit PipelineIterator(const data::Dataset& d) : iterator_(d.iterate()) {
    std::lock_guard guard(all_mutex());
    all().insert(this);
  }
  // Its threads may wait for Python's lock.
  ~PipelineIterator() {
    {
      std::lock_guard guard(all_mutex());
      all().erase(this);
    }
    stop();
  }
  PipelineIterator(const PipelineIterator&) = delete;
  PipelineIterator& operator=(const PipelineIterator&) = delete;

  void stop() {
    nb::gil_scoped_release release;
    std::lock_guard guard(mutex_);
    iterator_.reset();
  }
  // Before the interpreter ends: no thread may ask for its lock afterwards.
  static void stop_all() {
    std::vector<PipelineIterator*> now;
    {
      std::lock_guard guard(all_mutex());
      now.assign(all().begin(), all().end());
    }
    for (PipelineIterator* i : now) i->stop();
  }

  template <class F> auto use(F f) {
    nb::gil_scoped_release release;
    std::lock_guard guard(mutex_);
    if (!iterator_) user_error("this iterator was stopped, since the program ends");
    return f(*iterator_);
  }
  nb::object next() {
    Element element;
    const bool has_element = use([&](data::Iterator& i) {
      const frontend::EagerScope eager;  // a function that is being traced outside has no part in it
      const Polling polling;
      return i.next(element);
    });
    return has_element ? nb::object(from_tensors(element)) : nb::none();
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
  static std::mutex& all_mutex() {
    static auto& mutex = *new std::mutex;
    return mutex;
  }
  static std::set<PipelineIterator*>& all() {
    static auto& set = *new std::set<PipelineIterator*>;
    return set;
  }

  std::mutex mutex_;
  std::optional<data::Iterator> iterator_;
};

// --- sources and stages ------------------------------------------------------------------------------------------------------------------

// Makes a stage without Python's lock: what it calls of Python's takes it itself.
template <class F> Pipeline made(F f, std::vector<Function> callbacks = {}) {
  const PythonCall call;
  nb::gil_scoped_release release;
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
          nb::gil_scoped_release release;
          specs = p.dataset.known_specs();
        }
        return from_specs(specs);
      },
      "(dtype, dims) of each component; None when only running it would tell.");
  pipeline.def("cardinality", [](const Pipeline& p) { return p.dataset.cardinality(); });
  pipeline.def("str", [](const Pipeline& p) { return p.dataset.str(); });
  pipeline.def("iterate", [](const Pipeline& p) {
    nb::gil_scoped_release release;
    return std::make_unique<PipelineIterator>(p.dataset);
  });

  nb::class_<PipelineIterator>(m, "DatasetIterator")
      .def("next", &PipelineIterator::next, "The components of the next element, or None.")
      .def("save", &PipelineIterator::save)
      .def("restore", &PipelineIterator::restore)
      .def("explain", &PipelineIterator::explain);
  m.def("stop_iterators", &PipelineIterator::stop_all);

  nb::class_<data::RecordWriter>(m, "RecordWriter")
      .def("__init__", [](data::RecordWriter* self, const std::string& file,
                          const std::string& compression) { new (self) data::RecordWriter(file, compression_of(compression)); })
      .def("write", [](data::RecordWriter& w, nb::bytes record) { w.write({record.c_str(), record.size()}); })
      .def("close", &data::RecordWriter::close);
}

}  // namespace tandem::python
