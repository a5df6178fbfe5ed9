// The sentences that the table, the page and the JSON of a forecast share.
#pragma once
#include <string>
#include <vector>

#include "forecast/forecast.hpp"

namespace tandem::forecast {

std::string size(size_t bytes);     // "1.25 GiB"
std::string time(double seconds);   // "12.4 ms"
std::string percent(double share);  // "+12 %"
std::string verdict(const Forecast& f);
std::string slower(const Forecast& f, const Situation& s);  // ", 12 % slower", or nothing
std::string measures(const Situation& s);                   // "12 computed again, 3 MiB on the host"
std::string gain(const Forecast& f);                        // what a gigabyte more would buy
const char* kind(Move::Kind kind);
std::string why(const Move& m);
std::vector<std::string> assumptions(const Forecast& f);

}  // namespace tandem::forecast
