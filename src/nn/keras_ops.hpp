// Keras's operations and our rows: one table for both ways. An entry says which row computes a class of Keras, and which setting of that
// class is which attribute or operand of the row.
#pragma once
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.hpp"
#include "nn/op_layer.hpp"

namespace tandem::nn {

struct KerasField {
  enum class How : uint8_t {
    Attribute,  // one number stands for a list of one
    List,       // an attribute that is always a list
    Cuts,       // how many equal parts, or where one ends and the next begins; our attribute is the parts' sizes
    Operand,    // a number that our row takes as an operand behind the others
    Fixed,      // only this value
    Ignored,    // says nothing about the numbers; this value is written
  };
  std::string key, attribute;
  How how = How::Attribute;
  Config value = {};
};

struct KerasOp {
  std::string class_name, module, row;
  std::vector<KerasField> fields = {};
  bool takes_list = false;  // its operands are one argument, a list
  ir::Attrs preset = {};    // attributes that follow from the class alone
};

const std::vector<KerasOp>& keras_ops();
const KerasOp* find_keras_op(const std::string& module, const std::string& class_name);  // null: not supported

// Attributes to and from configs. None: a symbol, which a file cannot hold.
std::optional<Config> config_of(const ir::Attr& value);
ir::Attrs attributes_from(const KerasOp& op, const Config& config);  // the row's, completed; UserError for what it does not know
void expect_parts(int64_t count);  // UserError when an axis would become more results than a file can mean
// The sizes of the parts of an axis with this extent, from a setting of the kind Cuts.
Dims sizes_from(const KerasOp& op, const Config& cuts, const Dim& extent);
ir::Attr attribute_from(const ir::Signature::Attribute& attribute, const Config& value, const std::string& what);

// How Keras says this call: the entry, and the settings of its class. None when it cannot, or when its class would mean something else.
struct KerasForm {
  const KerasOp* op;
  Config config;
};
std::optional<KerasForm> keras_form(const ir::OpDef& row, const ir::Attrs& attrs, const std::vector<OpArgument>& arguments);

}  // namespace tandem::nn
