// A network as a table: layers with the shapes of their outputs and their parameters, and how much memory these take.
#include <cstdio>
#include <map>
#include <unordered_map>

#include "base/text.hpp"
#include "nn/layers/input.hpp"
#include "nn/network.hpp"

namespace tandem::nn {
namespace {

// Extents as Keras prints them: "(None, 28, 28, 1)".
std::string shape_text(const Dims& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) text += cat(i ? ", " : "", dims[i].is_const() ? dims[i].str() : "None");
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::string with_commas(int64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", bytes, units[unit]);
  return text;
}

struct Size {
  int64_t parameters = 0;
  double bytes = 0;
};

Size size_of(const std::vector<Variable>& weights) {
  Size s;
  for (const Variable& v : weights) {
    s.parameters += element_count(v.shape());
    s.bytes += static_cast<double>(byte_size(v.shape(), v.dtype()));
  }
  return s;
}

std::string total_line(const char* what, const Size& s) {
  return cat(" ", what, ": ", with_commas(s.parameters), " (", bytes_text(s.bytes), ")\n");
}

// How many columns a text takes: bytes that continue a character of UTF-8 take none.
size_t columns_of(const std::string& s) {
  size_t n = 0;
  for (const char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

class Table {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string str() const {
    std::vector<size_t> widths(rows_.front().size());
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
    const auto rule = [&](const char* left, const char* line, const char* cross, const char* right) {
      std::string text = left;
      for (size_t i = 0; i < widths.size(); ++i) {
        for (size_t k = 0; k < widths[i] + 2; ++k) text += line;
        text += i + 1 < widths.size() ? cross : right;
      }
      return text + "\n";
    };
    std::string text = rule("┌", "─", "┬", "┐");
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (size_t i = 0; i < widths.size(); ++i) {
        const std::string gap(widths[i] - columns_of(rows_[r][i]), ' ');
        const bool is_number = i == 2 && r > 0;
        text += "│ " + (is_number ? gap + rows_[r][i] : rows_[r][i] + gap) + " ";
      }
      text += "│\n";
      if (r == 0) text += rule("├", "─", "┼", "┤");
    }
    return text + rule("└", "─", "┴", "┘");
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Where a layer's inputs come from, for graphs: "dense[0][0]".
std::string sources_text(const NetworkBody& network, const Layer& layer) {
  std::string text;
  for (const size_t i : network.steps_of(layer))
    for (const auto& source : network.steps()[i].inputs)
      text += cat(text.empty() ? "" : ", ", network.steps()[source.step].origin->layer.name(),
                  source.output ? cat("[", source.output, "]") : "");
  return text;
}

// The shapes of each layer's outputs, of its last call.
using Shapes = std::unordered_map<const LayerBody*, std::map<size_t, std::string>>;

Shapes output_shapes(const NetworkBody& network) {
  Shapes shapes;
  const auto add = [&](const Symbol& s) { shapes[&s.origin()->layer.body()][s.output()] = shape_text(s.spec().dims); };
  for (const Symbol& s : network.outputs()) add(s);
  for (const auto& step : network.steps())
    for (const Symbol& s : step.origin->inputs) add(s);
  return shapes;
}

std::string output_text(const std::map<size_t, std::string>& shapes) {
  std::string text;
  for (const auto& [output, shape] : shapes) text += cat(text.empty() ? "" : ", ", shape);
  return shapes.size() > 1 ? cat("[", text, "]") : text;
}

}  // namespace

std::string Network::summary() const {
  const NetworkBody& body = network();
  Table table;
  std::vector<std::string> head{"Layer (type)", "Output Shape", "Param #"};
  if (!body.sequential()) head.emplace_back("Connected to");
  table.add(head);
  Shapes shapes;
  if (body.has_graph()) shapes = output_shapes(body);
  for (const Layer& layer : body.layers()) {
    const std::string parameters =
        layer.built() || layer.as<InputLayerBody>() ? with_commas(size_of(layer.weights()).parameters) : "0 (unbuilt)";
    std::vector<std::string> row{cat(layer.name(), " (", layer.class_name(), ")"),
                                 body.has_graph() ? output_text(shapes[&layer.body()]) : "?", parameters};
    if (!body.sequential()) row.push_back(sources_text(body, layer));
    table.add(row);
  }
  return cat("Model: \"", name(), "\"\n", table.str(), total_line("Total params", size_of(weights())),
             total_line("Trainable params", size_of(trainable_weights())),
             total_line("Non-trainable params", size_of(non_trainable_weights())));
}

}  // namespace tandem::nn
