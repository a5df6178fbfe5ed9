// Initialisers. What they draw follows Keras's distributions, from random numbers of our own.
#include <atomic>
#include <cmath>

#include <tandem/ops.hpp>
#include <tandem/random.hpp>

#include "frontend/thread_state.hpp"
#include "nn/named.hpp"

namespace tandem::nn {
namespace {

std::atomic<uint64_t>& seeds() {
  static std::atomic<uint64_t> next{0};
  return next;
}

Generator generator(const initializers::Seed& seed) { return Generator(seed ? static_cast<uint64_t>(*seed) : next_seed()); }

// Numbers in float32 or float64, then in the type that is asked for; at once, whatever this thread traces.
template <class F> Initializer named(const char* name, Config parameters, F draw) {
  return Initializer(name, parameters, [draw](const Shape& shape, DType dtype) -> Tensor {
    const frontend::EagerScope eager;
    const Tensor t = draw(shape, dtype == DType::F64 ? DType::F64 : DType::F32);
    return t.dtype() == dtype ? t : t.cast(dtype);
  });
}

Config seed_config(const initializers::Seed& seed) { return {{"seed", to_config(seed)}}; }

struct Fans {
  double in = 1, out = 1;
};

// Of a kernel: everything before its last two axes is one receptive field.
Fans fans_of(const Shape& shape) {
  if (shape.empty()) return {};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) field *= static_cast<double>(shape[i]);
  return {field * static_cast<double>(shape[shape.size() - 2]), field * static_cast<double>(shape.back())};
}

Tensor scaled_variance(const Shape& shape, DType dtype, const initializers::VarianceScalingOptions& o) {
  const Fans fans = fans_of(shape);
  const double fan = o.mode == "fan_in" ? fans.in : o.mode == "fan_out" ? fans.out : (fans.in + fans.out) / 2;
  const double variance = o.scale / std::max(1.0, fan);
  Generator random = generator(o.seed);
  if (o.distribution == "uniform") {
    const double limit = std::sqrt(3 * variance);
    return random.uniform(shape, -limit, limit, dtype);
  }
  if (o.distribution == "untruncated_normal") return random.normal(shape, 0.0, std::sqrt(variance), dtype);
  constexpr double kCut = 0.87962566103423978;  // the deviation of a normal distribution that is cut at two deviations
  return random.truncated_normal(shape, 0.0, std::sqrt(variance) / kCut, dtype);
}

// Glorot's (2010), He's (2015) and LeCun's (1998): the same with other numbers.
Initializer scaled(const char* name, double scale, const char* mode, const char* distribution, const initializers::Seed& seed) {
  Config parameters = seed_config(seed);
  parameters["input_axes"] = nullptr;
  parameters["output_axes"] = nullptr;
  return named(name, parameters,
               [=](const Shape& shape, DType dtype) { return scaled_variance(shape, dtype, {scale, mode, distribution, seed}); });
}

// Q of a random matrix, with the signs that make it uniform (Saxe et al., 2014; Mezzadri, 2007).
Tensor orthogonal(const Shape& shape, DType dtype, double gain, const initializers::Seed& seed) {
  if (shape.rank() < 2) user_error("Orthogonal: takes a shape with at least 2 axes, got ", shape.str());
  const int64_t columns = shape.back(), rows = columns == 0 ? 0 : element_count(shape) / columns;
  const auto [q, r] = qr(generator(seed).normal({std::max(rows, columns), std::min(rows, columns)}, 0.0, 1.0, dtype));
  const Tensor uniform = q * sign(diagonal(r));
  return gain * reshape(rows < columns ? transpose(uniform) : uniform, shape);
}

struct Reader : FieldReader {
  using FieldReader::FieldReader;
  template <class T> T get(const char* key, T value) {
    (*this)(key, value);
    return value;
  }
};

template <Initializer (*F)(initializers::Seed)> NamedEntry<InitializerKind> seeded(const char* name) {
  return {name, {}, [name](const Config& c) {
            Reader r(name, c);
            r.fixed("input_axes", nullptr);
            r.fixed("output_axes", nullptr);
            return F(r.get("seed", initializers::Seed()));
          }};
}

}  // namespace

void set_random_seed(uint64_t seed) { seeds() = seed; }
uint64_t next_seed() { return seeds()++; }

namespace initializers {

Initializer Zeros() {
  return named("Zeros", Config::object(), [](const Shape& shape, DType dtype) { return Tensor::zeros(shape, dtype); });
}
Initializer Ones() {
  return named("Ones", Config::object(), [](const Shape& shape, DType dtype) { return Tensor::ones(shape, dtype); });
}
Initializer Constant(double value) {
  return named("Constant", {{"value", value}}, [=](const Shape& shape, DType dtype) { return Tensor::full(shape, value, dtype); });
}
Initializer RandomNormal(double mean, double stddev, Seed seed) {
  Config c = seed_config(seed);
  c.update({{"mean", mean}, {"stddev", stddev}});
  return named("RandomNormal", c, [=](const Shape& shape, DType dtype) { return generator(seed).normal(shape, mean, stddev, dtype); });
}
Initializer RandomUniform(double minval, double maxval, Seed seed) {
  Config c = seed_config(seed);
  c.update({{"minval", minval}, {"maxval", maxval}});
  return named("RandomUniform", c, [=](const Shape& shape, DType dtype) { return generator(seed).uniform(shape, minval, maxval, dtype); });
}
Initializer TruncatedNormal(double mean, double stddev, Seed seed) {
  Config c = seed_config(seed);
  c.update({{"mean", mean}, {"stddev", stddev}});
  return named("TruncatedNormal", c,
               [=](const Shape& shape, DType dtype) { return generator(seed).truncated_normal(shape, mean, stddev, dtype); });
}
Initializer VarianceScaling(const VarianceScalingOptions& o) {
  if (!(o.scale > 0)) user_error("VarianceScaling: scale is ", o.scale, ", expected more than 0");
  const auto one_of = [](const char* setting, const std::string& value, const std::vector<std::string>& allowed) {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      unknown_name(cat(setting, " of VarianceScaling"), value, allowed);
  };
  VarianceScalingOptions known = o;
  if (known.distribution == "normal") known.distribution = "truncated_normal";  // Keras's older name
  one_of("mode", known.mode, {"fan_in", "fan_out", "fan_avg"});
  one_of("distribution", known.distribution, {"truncated_normal", "untruncated_normal", "uniform"});
  Config c = seed_config(known.seed);
  c.update({{"scale", known.scale},
            {"mode", known.mode},
            {"distribution", known.distribution},
            {"input_axes", nullptr},
            {"output_axes", nullptr}});
  return named("VarianceScaling", c, [=](const Shape& shape, DType dtype) { return scaled_variance(shape, dtype, known); });
}
Initializer GlorotUniform(Seed seed) { return scaled("GlorotUniform", 1, "fan_avg", "uniform", seed); }
Initializer GlorotNormal(Seed seed) { return scaled("GlorotNormal", 1, "fan_avg", "truncated_normal", seed); }
Initializer HeUniform(Seed seed) { return scaled("HeUniform", 2, "fan_in", "uniform", seed); }
Initializer HeNormal(Seed seed) { return scaled("HeNormal", 2, "fan_in", "truncated_normal", seed); }
Initializer LecunUniform(Seed seed) { return scaled("LecunUniform", 1, "fan_in", "uniform", seed); }
Initializer LecunNormal(Seed seed) { return scaled("LecunNormal", 1, "fan_in", "truncated_normal", seed); }
Initializer Orthogonal(double gain, Seed seed) {
  Config c = seed_config(seed);
  c["gain"] = gain;
  return named("Orthogonal", c, [=](const Shape& shape, DType dtype) { return orthogonal(shape, dtype, gain, seed); });
}
Initializer Identity(double gain) {
  return named("Identity", gain == 1 ? Config::object() : Config{{"gain", gain}}, [=](const Shape& shape, DType dtype) {
    if (shape.rank() != 2) user_error("Identity: takes a shape with 2 axes, got ", shape.str());
    return gain * eye(shape[0], shape[1], 0, dtype);
  });
}

}  // namespace initializers

template <> const char* NamedTable<InitializerKind>::what() { return "initializer"; }
template <> const char* NamedTable<InitializerKind>::module() { return "keras.initializers"; }
template <> bool NamedTable<InitializerKind>::by_name_only() { return false; }
template <> const std::vector<NamedEntry<InitializerKind>>& NamedTable<InitializerKind>::entries() {
  using namespace initializers;
  static const auto& all = *new std::vector<NamedEntry<InitializerKind>>{
      {"Zeros", {"zero"}, [](const Config&) { return Zeros(); }},
      {"Ones", {"one"}, [](const Config&) { return Ones(); }},
      {"Constant", {}, [](const Config& c) { return Constant(Reader("Constant", c).get("value", 0.0)); }},
      {"RandomNormal",
       {"normal"},
       [](const Config& c) {
         Reader r("RandomNormal", c);
         return RandomNormal(r.get("mean", 0.0), r.get("stddev", 0.05), r.get("seed", Seed()));
       }},
      {"RandomUniform",
       {"uniform"},
       [](const Config& c) {
         Reader r("RandomUniform", c);
         return RandomUniform(r.get("minval", -0.05), r.get("maxval", 0.05), r.get("seed", Seed()));
       }},
      {"TruncatedNormal",
       {},
       [](const Config& c) {
         Reader r("TruncatedNormal", c);
         return TruncatedNormal(r.get("mean", 0.0), r.get("stddev", 0.05), r.get("seed", Seed()));
       }},
      {"VarianceScaling",
       {},
       [](const Config& c) {
         Reader r("VarianceScaling", c);
         VarianceScalingOptions o;
         r("scale", o.scale);
         r("mode", o.mode);
         r("distribution", o.distribution);
         r("seed", o.seed);
         r.fixed("input_axes", nullptr);
         r.fixed("output_axes", nullptr);
         return VarianceScaling(o);
       }},
      seeded<GlorotUniform>("GlorotUniform"),
      seeded<GlorotNormal>("GlorotNormal"),
      seeded<HeUniform>("HeUniform"),
      seeded<HeNormal>("HeNormal"),
      seeded<LecunUniform>("LecunUniform"),
      seeded<LecunNormal>("LecunNormal"),
      {"Orthogonal",
       {"OrthogonalInitializer"},
       [](const Config& c) {
         Reader r("Orthogonal", c);
         return Orthogonal(r.get("gain", 1.0), r.get("seed", Seed()));
       }},
      {"Identity", {"IdentityInitializer"}, [](const Config& c) { return Identity(Reader("Identity", c).get("gain", 1.0)); }},
  };
  return all;
}

template class Named<InitializerKind>;

}  // namespace tandem::nn
