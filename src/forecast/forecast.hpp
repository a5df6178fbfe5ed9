// Whether a step fits into a device's memory, how long it takes by the cost model, what other limits and batches would give, and why.
#pragma once
#include <functional>

#include "device/cards.hpp"
#include "forecast/planner.hpp"

namespace tandem::forecast {

struct Question {
  int64_t batch = 32;
  size_t limit_bytes = 0;  // 0: what the device has
  int curve_points = 5;    // budgets between the least and what the step takes without a limit; 0: none
  bool finds_batch = true;
  std::string card;              // of the catalogue; empty: none
  int64_t effort = 100'000'000;  // of the search for a plan within the limit (plan::PlanOptions): about a second; others take a part of it
  std::function<void(const std::string&)> progress = {};  // what is planned now
};

struct Forecast {
  std::string step, device, description, card;
  std::vector<std::string> notes;
  size_t limit_bytes = 0;
  Situation unlimited;
  std::optional<Situation> planned;  // within the limit; the same as `unlimited` where that fits
  std::string refusal;               // why there is none
  std::string tightest;              // the unit that sets the least
  std::vector<std::pair<std::string, size_t>> largest;
  size_t least_bytes = 0;        // the smallest limit for which a plan was made
  std::vector<Situation> curve;  // by limit, from the least to what the step takes without one; without moments and moves
  int64_t batch_as_it_is = 0;    // the largest that fits without computing again or the host's memory; 0: none
  int64_t batch_planned = 0;     // the largest that was found to fit; 0: none
  int64_t batch_refused = 0;     // the next one that was tried, which does not; 0: none was refused
  double batch_planned_seconds = 0;
};

Forecast ask(Planner& planner, const Question& question);

std::string text_of(const Forecast& f);  // a table that people can read
std::string json_of(const Forecast& f);
std::string html_of(const Forecast& f);  // a page that holds everything it shows

}  // namespace tandem::forecast
