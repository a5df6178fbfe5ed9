// Tensors of strings: to and from Python's bytes, and the functions behind tf.strings, tf.lookup and tf.io.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include <tandem/data/images.hpp>

#include "core.hpp"
#include "data/examples.hpp"
#include "frontend/string_ops.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::python {
namespace {

namespace so = string_ops;

std::string text_of(PyObject* o) {
  if (PyBytes_Check(o)) return {PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o))};
  if (PyUnicode_Check(o)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) throw nb::python_error();
    return {text, static_cast<size_t>(size)};
  }
  if (const Tensor* t = as_tensor(o); t && is_string(*t) && t->rank() == 0) return strings_of(*t)[0];
  type_error(cat("a string is wanted, not ", nb::repr(nb::handle(o)).c_str()));
}

Tensor strings_from(nb::handle list, nb::handle shape) {
  nb::object items = nb::steal(PySequence_Fast(list.ptr(), "a sequence of strings is wanted"));
  if (!items.is_valid()) throw nb::python_error();
  std::vector<std::string> all;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) all.push_back(text_of(PySequence_Fast_GET_ITEM(items.ptr(), i)));
  return from_strings(std::move(all), bind(as_dims(shape.ptr()), {}));
}

nb::list strings_to_list(const Tensor& t) {
  nb::list list;
  for (const std::string& s : strings_of(t)) list.append(bytes_of(s));
  return list;
}

// Bytes of one string as numbers.
Tensor bytes_tensor(const Tensor& t) {
  const std::span<const std::string> all = strings_of(t);
  if (all.size() != 1) user_error("one string is wanted, there are ", all.size());
  return data::from_text(all[0]);
}

so::Unit unit_of(const std::string& name) {
  if (name == "BYTE") return so::Unit::Byte;
  if (name == "UTF8_CHAR") return so::Unit::Utf8;
  user_error("the unit '", name, "' is neither BYTE nor UTF8_CHAR");
}

nb::object from_parts(const so::Parts& p) { return nb::make_tuple(from_tensor(p.values), from_tensor(p.counts)); }

// What runs without Python's lock, at once, whatever is traced outside.
template <class F> auto now(F f) {
  GilReleased release;
  const frontend::EagerScope eager;
  return f();
}

// Strings to numbers, for tables and vocabularies.
class StringTable {
 public:
  void insert(const Tensor& keys, const Tensor& values) {
    const std::span<const std::string> all = strings_of(keys);
    const std::vector<int64_t> numbers = values.to_vector<int64_t>();
    if (all.size() != numbers.size()) user_error("a table: ", all.size(), " keys and ", numbers.size(), " values");
    for (size_t i = 0; i < all.size(); ++i) map_[all[i]] = numbers[i];
  }
  Tensor find(const Tensor& keys, int64_t missing) const {
    std::vector<int64_t> found;
    for (const std::string& s : strings_of(keys)) {
      const auto at = map_.find(s);
      found.push_back(at == map_.end() ? missing : at->second);
    }
    return Tensor::from(found, keys.shape());
  }
  size_t size() const { return map_.size(); }

 private:
  std::unordered_map<std::string, int64_t> map_;
};

nb::list parse_examples(const Tensor& serialized, nb::handle features) {
  std::vector<data::WantedFeature> wanted;
  for (nb::handle f : nb::borrow<nb::sequence>(features)) {
    const nb::tuple t = nb::cast<nb::tuple>(f);
    const nb::object dtype = t[1];
    wanted.push_back({nb::cast<std::string>(t[0]), dtype.is(from_dtype(kString)) ? kString : as_dtype(dtype.ptr())});
  }
  const std::vector<data::FoundFeature> found = now([&] { return data::parse_examples(strings_of(serialized), wanted); });
  nb::list list;
  for (const data::FoundFeature& f : found) list.append(nb::make_tuple(from_tensor(f.values), from_tensor(f.counts)));
  return list;
}

}  // namespace

void add_strings(nb::module_& m) {
  m.def("strings_from", strings_from, "A tensor of strings; str is written as UTF-8.");
  m.def("strings_to_list", strings_to_list, "All elements as bytes, row-major.");
  m.def("is_string", [](const Tensor& t) { return is_string(t); });
  m.def("string_bytes", bytes_tensor);

  nb::module_ s = m.def_submodule("strings", "Functions over tensors of strings.");
  s.def("lower", [](const Tensor& x) { return now([&] { return so::lower(x); }); });
  s.def("upper", [](const Tensor& x) { return now([&] { return so::upper(x); }); });
  s.def("strip", [](const Tensor& x) { return now([&] { return so::strip(x); }); });
  s.def("length", [](const Tensor& x, const std::string& unit) { return now([&] { return so::length(x, unit_of(unit)); }); });
  s.def("substr", [](const Tensor& x, const Tensor& position, const Tensor& count, const std::string& unit) {
    return now([&] { return so::substr(x, position, count, unit_of(unit)); });
  });
  s.def("join", [](nb::handle xs, const nb::bytes& separator) {
    const std::vector<Tensor> all = to_tensors(xs.ptr());
    const std::string by(separator.c_str(), separator.size());
    return now([&] { return so::join(all, by); });
  });
  s.def("to_number", [](const Tensor& x, nb::handle dtype) {
    const DType t = as_dtype(dtype.ptr());
    return now([&] { return so::to_number(x, t); });
  });
  s.def("to_hash_bucket", [](const Tensor& x, int64_t buckets) { return now([&] { return so::to_hash_bucket(x, buckets); }); });
  s.def("to_plain_hash_bucket", [](const Tensor& x, int64_t buckets) { return now([&] { return so::to_plain_hash_bucket(x, buckets); }); });
  s.def("to_keyed_hash_bucket", [](const Tensor& x, int64_t buckets, uint64_t key0, uint64_t key1) {
    return now([&] { return so::to_keyed_hash_bucket(x, buckets, key0, key1); });
  });
  s.def("regex_replace", [](const Tensor& x, const nb::bytes& pattern, const nb::bytes& rewrite, bool all) {
    const std::string p(pattern.c_str(), pattern.size()), r(rewrite.c_str(), rewrite.size());
    return now([&] { return so::regex_replace(x, p, r, all); });
  });
  s.def("regex_full_match", [](const Tensor& x, const nb::bytes& pattern) {
    const std::string p(pattern.c_str(), pattern.size());
    return now([&] { return so::regex_full_match(x, p); });
  });
  s.def("join_rows", [](const Tensor& x, const nb::bytes& separator) {
    const std::string by(separator.c_str(), separator.size());
    return now([&] { return so::join_rows(x, by); });
  });
  s.def("ngrams", [](const Tensor& values, const Tensor& counts, std::vector<int64_t> widths, const nb::bytes& separator,
                     const nb::bytes& left, const nb::bytes& right, int64_t padding, bool keeps_short) {
    const so::Ngrams wanted{
        std::move(widths), {separator.c_str(), separator.size()}, {left.c_str(), left.size()}, {right.c_str(), right.size()}, padding,
        keeps_short};
    return from_parts(now([&] { return so::ngrams(values, counts, wanted); }));
  });
  s.def("split", [](const Tensor& x, const nb::bytes& separator, int64_t most) {
    const std::string by(separator.c_str(), separator.size());
    return from_parts(now([&] { return so::split(x, by, most); }));
  });
  s.def("split_bytes", [](const Tensor& x) { return from_parts(now([&] { return so::split_bytes(x); })); });
  s.def("split_characters", [](const Tensor& x) { return from_parts(now([&] { return so::split_characters(x); })); });
  s.def("fingerprint", [](const Tensor& x) { return now([&] { return so::fingerprint(x); }); });
  s.def("is_utf8", [](const Tensor& x) { return so::is_utf8(x); });
  s.def("code_points", [](const Tensor& x) { return from_parts(now([&] { return so::code_points(x); })); });
  s.def("parse_examples", parse_examples, "(values, counts) of each feature (key, dtype), over all serialized examples.");

  nb::class_<StringTable>(s, "Table")
      .def(nb::init<>())
      .def("insert", [](StringTable& t, const Tensor& keys, const Tensor& values) { now([&] { return t.insert(keys, values), 0; }); })
      .def("find", [](const StringTable& t, const Tensor& keys, int64_t missing) { return now([&] { return t.find(keys, missing); }); })
      .def("size", &StringTable::size);

  s.def("decode_jpeg", [](const Tensor& x, int64_t channels) { return now([&] { return data::decode_jpeg(bytes_tensor(x), channels); }); });
  s.def("decode_png", [](const Tensor& x, int64_t channels) { return now([&] { return data::decode_png(bytes_tensor(x), channels); }); });
  s.def("decode_image",
        [](const Tensor& x, int64_t channels) { return now([&] { return data::decode_image(bytes_tensor(x), channels); }); });
}

}  // namespace tandem::python
