// Names as users write them: the same in other spellings, and which known one an unknown one may mean.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tandem::nn {

std::string snake_case(std::string_view class_name);  // Keras's: "MaxPooling2D" -> "max_pooling2d", "LSTM" -> "lstm"

// The few that an unknown name may mean, nearest first: one or two letters away, or of the same words but for some (sparse_crossentropy,
// sparse_categorical_crossentropy), or else by letters.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known);

// "unknown layer 'Dens'", with a hint that names those that are near, or a few of all when none is. `how` is another way out: it comes
// behind near names and before others.
[[noreturn]] void unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known,
                               std::string_view how = {});

}  // namespace tandem::nn
