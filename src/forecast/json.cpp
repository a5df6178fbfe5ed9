// A forecast as JSON: every number in bytes and seconds.
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "forecast/words.hpp"

namespace tandem::forecast {
namespace {

using Json = nlohmann::ordered_json;

const char* key(Move::Kind k) {
  return k == Move::Kind::Recomputed    ? "recomputed"
         : k == Move::Kind::Offloaded   ? "offloaded"
         : k == Move::Kind::StateOnHost ? "state_on_host"
                                        : "to_host";
}
const char* name_of(Moment::Lane lane) {
  static constexpr const char* kNames[] = {"compute", "upload", "download", "host"};
  return kNames[static_cast<size_t>(lane)];
}

Json json(const Parts& parts) {
  Json j = Json::object();
  for (size_t r = 0; r < kRoles; ++r) j[forecast::key(static_cast<Role>(r))] = parts[r];
  return j;
}

Json json(const Situation& s) {
  Json j = {{"batch", s.batch},
            {"limit_bytes", s.limit_bytes ? Json(s.limit_bytes) : Json()},
            {"peak_bytes", s.peak_bytes},
            {"host_bytes", s.host_bytes},
            {"seconds", s.seconds},
            {"parts", json(s.parts)},
            {"recomputed", {{"count", s.recomputed}, {"bytes", s.recomputed_bytes}, {"seconds", s.recomputed_seconds}}},
            {"offloaded", {{"count", s.offloaded}, {"bytes", s.offloaded_bytes}}},
            {"state_on_host", {{"count", s.state_on_host}, {"bytes", s.state_on_host_bytes}}},
            {"copy_seconds", s.copy_seconds}};
  if (!s.moments.empty()) {
    Json moves = Json::array(), moments = Json::array();
    for (const Move& m : s.moves)
      moves.push_back({{"kind", key(m.kind)},
                       {"what", m.what},
                       {"bytes", m.bytes},
                       {"seconds", m.seconds},
                       {"instead_seconds", m.instead},
                       {"line", m.line},
                       {"why", why(m)}});
    for (const Moment& m : s.moments)
      moments.push_back({{"begin", m.begin},
                         {"end", m.end},
                         {"lane", name_of(m.lane)},
                         {"label", m.label},
                         {"again", m.is_again},
                         {"bytes", sum(m.parts)}});
    j["moves"] = std::move(moves);
    j["timeline"] = std::move(moments);
  }
  return j;
}

}  // namespace

std::string json_of(const Forecast& f) {
  Json curve = Json::array(), largest = Json::array();
  for (const Situation& s : f.curve) curve.push_back(json(s));
  for (const auto& [label, bytes] : f.largest) largest.push_back({{"what", label}, {"bytes", bytes}});
  const Json j = {{"step", f.step},
                  {"device", f.device},
                  {"card", f.card.empty() ? Json() : Json(f.card)},
                  {"assumptions", assumptions(f)},
                  {"limit_bytes", f.limit_bytes},
                  {"fits", f.planned.has_value()},
                  {"verdict", verdict(f)},
                  {"unlimited", json(f.unlimited)},
                  {"planned", f.planned ? json(*f.planned) : Json()},
                  {"refusal", f.refusal.empty() ? Json() : Json(f.refusal)},
                  {"least_bytes", f.least_bytes},
                  {"least_set_by", f.tightest},
                  {"largest_values", largest},
                  {"largest_batch",
                   {{"as_it_is", f.batch_as_it_is},
                    {"planned", f.batch_planned},
                    {"refused", f.batch_refused},
                    {"planned_seconds", f.batch_planned_seconds}}},
                  {"curve", curve}};
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tandem::forecast
