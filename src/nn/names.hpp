// Names as users write them: the same in other spellings, and which known one an unknown one may mean.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tandem::nn {

std::string snake_case(std::string_view class_name);  // Keras's: "MaxPooling2D" -> "max_pooling2d", "LSTM" -> "lstm"

// "unknown layer 'Dens'", with a hint that names those that are near, or all when none is; `more` is what else the hint says.
[[noreturn]] void unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known,
                               std::string_view more = {});

}  // namespace tandem::nn
