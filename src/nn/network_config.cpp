// Networks to and from Keras's configs.
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "nn/fields.hpp"
#include "nn/layers/input.hpp"
#include "nn/network.hpp"
#include "nn/op_layer.hpp"

namespace tandem::nn {
namespace {

// --- writing -----------------------------------------------------------------------------------------------------------------------

// Keras counts the calls of a layer within one network.
std::vector<size_t> node_indices(const NetworkBody& network) {
  std::vector<size_t> indices(network.steps().size());
  for (const Layer& layer : network.layers()) {
    std::vector<size_t> steps = network.steps_of(layer);
    std::sort(steps.begin(), steps.end(),
              [&](size_t a, size_t b) { return network.steps()[a].origin->call < network.steps()[b].origin->call; });
    for (size_t n = 0; n < steps.size(); ++n) indices[steps[n]] = n;
  }
  return indices;
}

size_t first_call(const Layer& layer) {
  const auto* network = layer.as<NetworkBody>();
  return network && !network->sequential() ? 1 : 0;
}

class Writer {
 public:
  explicit Writer(const NetworkBody& network) : network_(network), indices_(node_indices(network)) {}

  Config layers() const {
    Config all = Config::array();
    for (const Layer& layer : network_.layers()) {
      Config object = serialize(layer);
      object["name"] = layer.name();
      object["inbound_nodes"] = inbound_nodes(layer);
      all.push_back(std::move(object));
    }
    return all;
  }

  // One place, or a list of several. In these lists, and only there, Keras counts the calls of an inner graph from 1.
  Config places(const std::vector<Symbol>& symbols) const {
    Config all = Config::array();
    for (const Symbol& s : symbols) {
      Config p = place(s);
      p[1] = p[1].get<size_t>() + first_call(s.origin()->layer);
      all.push_back(std::move(p));
    }
    return symbols.size() == 1 ? all[0] : all;
  }

 private:
  Config place(const Symbol& s) const {
    const NetworkBody::Source source = network_.source_of(s);
    return Config::array({s.origin()->layer.name(), indices_[source.step], source.output});
  }

  Config tensor(const Symbol& s) const {
    return {{"class_name", "__keras_tensor__"},
            {"config", {{"shape", to_config(s.spec().dims)}, {"dtype", std::string(name(s.spec().dtype))}, {"keras_history", place(s)}}}};
  }

  Config inbound_nodes(const Layer& layer) const {
    std::vector<std::pair<size_t, Config>> nodes;
    for (const size_t i : network_.steps_of(layer)) {
      const Symbol::Origin& o = *network_.steps()[i].origin;
      if (!o.inputs.empty()) nodes.emplace_back(indices_[i], node(o));
    }
    std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Config all = Config::array();
    for (auto& [index, n] : nodes) all.push_back(std::move(n));
    return all;
  }

  Config node(const Symbol::Origin& o) const {
    Config args = Config::array(), kwargs = Config::object();
    std::vector<Config> list;
    for (const Symbol& s : o.inputs) list.push_back(tensor(s));
    if (const auto* op = o.layer.as<OpNode>()) return {{"args", op->arguments(list)}, {"kwargs", kwargs}};
    const std::vector<std::string> names = o.layer.body().call_arguments();
    if (names.empty()) {
      args.push_back(list.size() == 1 ? list[0] : Config(list));
    } else {
      args.push_back(list[0]);
      for (size_t i = 1; i < list.size(); ++i) {
        const std::string& name = names.at(std::min(i, names.size() - 1));
        if (name.ends_with("..."))
          kwargs[name.substr(0, name.size() - 3)].push_back(list[i]);
        else
          kwargs[name] = list[i];
      }
    }
    for (const auto& [flag, value] : o.flags) kwargs[flag] = value;
    return {{"args", args}, {"kwargs", kwargs}};
  }

  const NetworkBody& network_;
  std::vector<size_t> indices_;
};

// --- reading -------------------------------------------------------------------------------------------------------------------------

const Config& member(const Config& c, const char* key, const std::string& what) {
  const auto it = c.is_object() ? c.find(key) : c.end();
  if (!c.is_object() || it == c.end()) user_error(what, ": the config has no '", key, "'");
  return *it;
}

class Reader {
 public:
  explicit Reader(const Config& config) : what_("Functional") {
    for (const Config& object : list(member(config, "layers", what_), "layers")) add(object);
    // What has its inputs is called; what has not waits for the one call that it lacks first, so that each is looked at as often as it
    // has inputs, in whichever order a file has them.
    std::map<Place, std::vector<size_t>> waiting;
    std::deque<size_t> ready(entries_.size());
    std::iota(ready.begin(), ready.end(), size_t{0});
    size_t left = entries_.size();
    for (; !ready.empty(); ready.pop_front()) {
      const size_t at = ready.front();
      size_t call = entries_[at].calls.size();
      if (const std::optional<Place> lacks = advance(entries_[at]))
        waiting[*lacks].push_back(at);
      else
        --left;
      for (; call < entries_[at].calls.size(); ++call)
        if (const auto found = waiting.find({at, call}); found != waiting.end()) {
          ready.insert(ready.end(), found->second.begin(), found->second.end());
          waiting.erase(found);
        }
    }
    if (left != 0) user_error(what_, ": the calls of ", left, " layers depend on each other or on what is not there");
  }

  std::vector<Symbol> symbols(const Config& places, const char* key) const {
    std::vector<Symbol> all;
    list(places, key);
    if (!places.empty() && places[0].is_string()) {
      all.push_back(symbol(places));
    } else {
      for (const Config& p : places) all.push_back(symbol(p));
    }
    return all;
  }

 private:
  using Place = std::pair<size_t, size_t>;  // an entry and which of its calls
  struct Entry {
    std::string name;
    Layer layer;  // of an operation once its first call was read, which has a part of what it is
    const Config* object;
    const Config* nodes;
    std::vector<std::vector<Symbol>> calls;  // the outputs of each
  };

  const Config& list(const Config& c, const char* key) const {
    if (!c.is_array()) user_error(what_, ": ", key, " is ", c.type_name(), ", expected a list");
    return c;
  }

  void add(const Config& object) {
    Entry e{.object = &object, .nodes = &list(member(object, "inbound_nodes", what_), "inbound_nodes")};
    if (is_op(object)) {
      const Config& name = member(object, "name", what_);
      if (!name.is_string()) user_error(what_, ": the name of an operation is ", name.type_name(), ", expected text");
      e.name = name.get<std::string>();
    } else {
      e.layer = deserialize(object);
      e.name = e.layer.name();
      if (e.layer.as<InputLayerBody>()) e.calls.push_back({input_symbol(e.layer)});
    }
    if (!index_.emplace(e.name, entries_.size()).second) user_error(what_, ": two layers are named '", e.name, "'");
    entries_.push_back(std::move(e));
  }

  // As far as there are inputs; then the call that the next one lacks, nothing at the end.
  std::optional<Place> advance(Entry& e) const {
    if (e.layer.as<InputLayerBody>()) return {};
    while (e.calls.size() < e.nodes->size()) {
      const Config& node = (*e.nodes)[e.calls.size()];
      const Call call = is_op(*e.object) ? read_op_call(e, node) : read_call(e, node);
      if (call.lacks) return call.lacks;
      e.calls.push_back(e.layer(call.inputs, call.flags));
    }
    return {};
  }

  struct Call {
    std::vector<Symbol> inputs;
    CallFlags flags;
    std::optional<Place> lacks = {};  // an input that is not there yet
  };

  // What an operation is called with belongs to it, so calls of one must have the same but for their tensors.
  Call read_op_call(Entry& e, const Config& node) const {
    std::vector<Config> tensors;
    const Layer layer = op_from_config(*e.object, member(node, "args", e.name), member(node, "kwargs", e.name), tensors);
    Call call;
    for (const Config& t : tensors)
      if (!place_input(member(member(t, "config", what_), "keras_history", what_), call)) return call;
    if (!e.layer) e.layer = layer;
    std::vector<Config> numbered;
    for (size_t i = 0; i < tensors.size(); ++i) numbered.push_back(cat("tensor ", i));
    if (e.layer.as<OpNode>()->arguments(numbered) != layer.as<OpNode>()->arguments(numbered))
      user_error("operation '", e.name, "': its calls have different arguments, which is not supported");
    return call;
  }

  // False when this input is not there yet.
  bool place_input(const Config& place, Call& call) const {
    const Symbol* s = find(place);
    if (!s)
      call.lacks = Place{index_.at(place[0].get<std::string>()), place[1].get<size_t>()};
    else
      call.inputs.push_back(*s);
    return s != nullptr;
  }

  Call read_call(const Entry& e, const Config& node) const {
    std::map<std::string, Config> given;  // by argument
    std::vector<Config> inputs;
    const std::vector<std::string> names = e.layer.body().call_arguments();
    const Config& args = list(member(node, "args", e.layer.name()), "args");
    Call call;
    for (size_t i = 0; i < args.size(); ++i) {
      if (names.empty()) {
        collect(args[i], inputs);
      } else {
        if (i >= names.size()) user_error("layer '", e.layer.name(), "': takes ", names.size(), " arguments, got ", args.size());
        given[names[i]] = args[i];
      }
    }
    const Config& kwargs = member(node, "kwargs", e.layer.name());
    if (!kwargs.is_object()) user_error("layer '", e.layer.name(), "': kwargs is ", kwargs.type_name(), ", expected an object");
    for (const auto& [key, value] : kwargs.items()) {
      if (value.is_null()) continue;
      const auto name = std::find_if(names.begin(), names.end(), [&, k = key](const std::string& n) { return n == k || n == k + "..."; });
      if (value.is_boolean())
        call.flags[key] = value.get<bool>();
      else if (name != names.end())
        given[*name] = value;
      else
        user_error("layer '", e.layer.name(), "': the argument '", key, "' of its call is not supported");
    }
    // One that is left out before one that is given is the same as the one before it.
    for (size_t i = 0, left = given.size(); i < names.size() && left > 0; ++i) {
      const auto it = given.find(names[i]);
      if (it != given.end()) {
        collect(it->second, inputs);
        --left;
      } else {
        if (inputs.empty()) user_error("layer '", e.layer.name(), "': its call has no '", names[i], "'");
        inputs.push_back(inputs.back());
      }
    }
    for (const Config& place : inputs)
      if (!place_input(place, call)) break;
    return call;
  }

  // The places of the tensors in an argument, which may be a list of them.
  void collect(const Config& argument, std::vector<Config>& places) const {
    if (argument.is_array()) {
      for (const Config& c : argument) collect(c, places);
    } else if (!argument.is_null()) {
      places.push_back(member(member(argument, "config", what_), "keras_history", what_));
    }
  }

  // Null when that call was not made yet.
  const Symbol* find(const Config& place) const {
    const bool good =
        place.is_array() && place.size() == 3 && place[0].is_string() && place[1].is_number_unsigned() && place[2].is_number_unsigned();
    if (!good) user_error(what_, ": a tensor is at ", place.dump().substr(0, 60), ", expected [layer, call, output]");
    const auto it = index_.find(place[0].get<std::string>());
    if (it == index_.end()) user_error(what_, ": no layer is named ", place[0].dump());
    const Entry& e = entries_[it->second];
    const auto call = place[1].get<size_t>(), output = place[2].get<size_t>();
    if (call >= e.calls.size()) return nullptr;
    if (output >= e.calls[call].size())
      user_error(what_, ": layer ", place[0].dump(), " has ", e.calls[call].size(), " outputs, number ", output, " is asked for");
    return &e.calls[call][output];
  }

  Symbol symbol(Config place) const {
    find(place);  // checks its form
    const Layer& layer = entries_[index_.at(place[0].get<std::string>())].layer;
    const size_t first = layer ? first_call(layer) : 0, given = place[1].get<size_t>();
    place[1] = given - first;  // 0 - 1 is a call that there is not
    if (const Symbol* s = find(place)) return *s;
    place[1] = given;
    user_error(what_, ": there is no call ", place.dump());
  }

  std::string what_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> index_;
};

Layer functional_from(const Config& config) {
  const Reader reader(config);
  return Network(reader.symbols(member(config, "input_layers", "Functional"), "input_layers"),
                 reader.symbols(member(config, "output_layers", "Functional"), "output_layers"));
}

Layer sequential_from(const Config& config) {
  const Config& objects = member(config, "layers", "Sequential");
  if (!objects.is_array()) user_error("Sequential: layers is ", objects.type_name(), ", expected a list");
  std::vector<Layer> layers;
  for (const Config& object : objects) layers.push_back(deserialize(object));
  Dims shape;
  FieldReader reader("Sequential", config);
  if (const auto it = config.find("build_input_shape"); it != config.end() && it->is_array()) reader("build_input_shape", shape);
  if (!shape.empty() && !layers.empty() && !layers.front().as<InputLayerBody>())
    layers.insert(layers.begin(), Input(Dims(shape.begin() + 1, shape.end())));
  return Network::sequential(std::move(layers));
}

}  // namespace

Config NetworkBody::config() const {
  FieldWriter writer;
  if (sequential_) {
    Config objects = Config::array();
    if (has_graph()) objects.push_back(serialize(inputs_.front()));
    for (const Layer& layer : layers_) objects.push_back(serialize(layer));
    writer.fixed("layers", objects);
    if (has_graph()) writer.fixed("build_input_shape", to_config(inputs_.front().spec().dims));
  } else {
    const Writer graph(*this);
    writer.absent("dtype");
    writer.fixed("layers", graph.layers());
    writer.fixed("input_layers", graph.places(inputs_));
    writer.fixed("output_layers", graph.places(outputs_));
  }
  return writer.take();
}

void register_networks() {
  register_own_layer("Functional", &functional_from);
  register_own_layer("Model", &functional_from);
  register_own_layer("Sequential", &sequential_from);
}

}  // namespace tandem::nn
