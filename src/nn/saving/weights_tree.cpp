#include "nn/saving/weights_tree.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace tandem::nn {
namespace {

std::string join(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

// Keras goes through attributes by name, those with an underscore last; of a network through its layers first. It matters where one
// layer is reached twice: the first way to it is the one that counts.
std::vector<LayerBody::Child> in_order_of_visit(const LayerBody& body) {
  std::vector<LayerBody::Child> children = body.children();
  const auto key = [](const LayerBody::Child& c) {
    const bool of_network = c.attribute.starts_with("layers/");
    return of_network ? "" : c.attribute.starts_with("_") ? "~" + c.attribute : c.attribute;
  };
  std::stable_sort(children.begin(), children.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return children;
}

void walk(const Layer& layer, const std::string& path, std::set<const LayerBody*>& seen, const VisitLayer& visit) {
  if (!seen.insert(&layer.body()).second) return;
  visit(path, layer);
  for (const LayerBody::Child& child : in_order_of_visit(layer.body())) walk(child.layer, join(path, child.attribute), seen, visit);
}

// With a loss scale Keras has an optimizer around the user's: a step's number and a rate that stay 0, once it was built how many steps
// were finite and the scale, then all that is the inner one's, which has its own group as well.
constexpr char kOptimizer[] = "optimizer", kInner[] = "optimizer/inner_optimizer", kLossScaleName[] = "loss_scale_optimizer";
constexpr size_t kOfLossScale = 4;

std::vector<Variable> state_of(const LossScale& scale) { return {scale.variables()[1], scale.variables()[0]}; }

std::vector<Variable> around(const Optimizer& inner, const std::vector<Variable>& state) {
  std::vector<Variable> all = {Variable(Tensor::zeros({}, DType::I32), {.name = "iteration", .trainable = false}),
                               Variable(Tensor::scalar(0.f), {.name = "learning_rate", .trainable = false})};
  all.insert(all.end(), state.begin(), state.end());
  all.insert(all.end(), inner.variables().begin(), inner.variables().end());
  return all;
}

size_t count_at(const io::Hdf5Group& file, const std::string& path) {
  const io::Hdf5Group* vars = file.find(join(path, "vars"));
  return vars ? vars->datasets.size() : 0;
}

void put(io::Hdf5Group& tree, const std::string& path, const std::string& name, const std::vector<Variable>& variables) {
  io::Hdf5Group& vars = tree.at(join(path, "vars"));
  vars.attributes["name"] = name;
  for (size_t i = 0; i < variables.size(); ++i) vars.datasets[std::to_string(i)] = variables[i].value();
}

// What a file and a model have for each other, found before anything is changed.
class Match {
 public:
  explicit Match(const io::Hdf5Group& file) : file_(file) {}

  void take(const std::string& path, const std::string& what, const std::vector<Variable>& variables) {
    const std::string vars = join(path, "vars");
    taken_.insert(vars);
    const io::Hdf5Group* group = file_.find(vars);
    const size_t count = group ? group->datasets.size() : 0;
    if (count != variables.size()) {
      differ(vars, " (", what, "): ", variables.size(), " weights in the model, ", count, " in the file", count == 0 ? beside(path) : "");
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      const auto found = group->datasets.find(std::to_string(i));
      const std::string place = join(vars, std::to_string(i));
      if (found == group->datasets.end())
        differ(place, " (", what, "): ", variables[i].name(), " is not in the file");
      else if (!(found->second.shape() == variables[i].shape()))
        differ(place, " (", variables[i].name(), " of ", what, "): ", variables[i].shape(), " in the model, ", found->second.shape(),
               " in the file");
      else
        pairs_.emplace_back(variables[i], found->second);
    }
  }

  // What nobody took. The state of random numbers has its own place in other versions' files and is not a weight.
  void look_for_more(const io::Hdf5Group& group, const std::string& path) {
    if (!group.datasets.empty() && !taken_.contains(path) && path.find("seed_generator") == std::string::npos)
      differ(path, ": no such layer in the model, ", group.datasets.size(), " weights in the file");
    for (const auto& [name, child] : group.groups) look_for_more(child, join(path, name));
  }

  const std::vector<std::string>& differences() const { return differences_; }
  void assign() const {
    for (const auto& [variable, value] : pairs_) variable.assign(value);
  }

 private:
  template <class... T> void differ(const T&... parts) { differences_.push_back(cat(parts...)); }

  // The groups next to one that is missing.
  std::string beside(const std::string& path) const {
    const size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    const io::Hdf5Group* group = file_.find(parent);
    if (!group || file_.find(path)) return "";
    std::string names;
    for (const auto& [name, child] : group->groups) names += (names.empty() ? "" : ", ") + name;
    return cat("; ", parent, " has ", names.empty() ? "nothing" : names.substr(0, 200));
  }

  const io::Hdf5Group& file_;
  std::set<std::string> taken_;
  std::vector<std::pair<Variable, Tensor>> pairs_;
  std::vector<std::string> differences_;
};

[[noreturn]] void refuse(const std::string& label, const std::string& whom, const std::vector<std::string>& differences) {
  constexpr size_t kMost = 8;
  std::string lines;
  for (size_t i = 0; i < std::min(kMost, differences.size()); ++i) lines += "\n  " + differences[i];
  if (differences.size() > kMost) lines += cat("\n  … and ", differences.size() - kMost, " more");
  user_error(label, ": the weights do not fit ", whom, lines);
}

std::string described(const Layer& layer) { return cat(layer.class_name(), " '", layer.name(), "'"); }

}  // namespace

void for_each_layer(const Layer& model, const VisitLayer& visit) {
  std::set<const LayerBody*> seen;
  walk(model, "", seen, visit);
}

io::Hdf5Group weights_tree(const Layer& model, const TrainingState& training) {
  io::Hdf5Group tree;
  for_each_layer(model, [&](const std::string& path, const Layer& layer) { put(tree, path, layer.name(), layer.body().own_weights()); });
  if (const Optimizer* optimizer = training.optimizer) {
    if (const LossScale* scale = training.loss_scale)
      put(tree, kOptimizer, kLossScaleName, around(*optimizer, optimizer->built() ? state_of(*scale) : std::vector<Variable>()));
    put(tree, training.loss_scale ? kInner : kOptimizer, optimizer->name(), optimizer->variables());
  }
  return tree;
}

const io::Hdf5Group* optimizer_variables(const io::Hdf5Group& file) {
  const io::Hdf5Group* inner = file.find(join(kInner, "vars"));
  return inner ? inner : file.find(join(kOptimizer, "vars"));
}

bool assign_weights(const io::Hdf5Group& file, const std::string& label, const Layer& model, const TrainingState& training,
                    OptimizerState state) {
  Match weights(file);
  for_each_layer(model,
                 [&](const std::string& path, const Layer& layer) { weights.take(path, described(layer), layer.body().own_weights()); });
  if (const io::Hdf5Group* layers = file.find("layers")) weights.look_for_more(*layers, "layers");
  if (!weights.differences().empty()) refuse(label, described(model), weights.differences());

  Match slots(file);
  bool takes_state = false;
  if (const Optimizer* optimizer = training.optimizer; optimizer && optimizer_variables(file)) {
    const bool has_inner = file.find(join(kInner, "vars"));
    // Neither a file that was saved before the first step nor one that was trained without a scale has one; ours stays.
    const bool has_scale = has_inner && count_at(file, kOptimizer) == count_at(file, kInner) + kOfLossScale;
    const std::string what = cat("optimizer '", optimizer->name(), "'");
    if (training.loss_scale && has_scale)
      slots.take(kOptimizer, what, around(*optimizer, state_of(*training.loss_scale)));
    else
      slots.take(has_inner ? kInner : kOptimizer, what, optimizer->variables());
    takes_state = slots.differences().empty();
    if (!takes_state && state == OptimizerState::Required) refuse(label, "the optimizer", slots.differences());
  }
  weights.assign();
  if (takes_state) slots.assign();
  return takes_state;
}

}  // namespace tandem::nn
