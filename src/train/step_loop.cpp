// The loop that runs a compiled step over batches.
#include <chrono>
#include <cstdio>
#include <sstream>

#include <tandem/train.hpp>

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "profile/recorder.hpp"

namespace tandem::train {

using Clock = std::chrono::steady_clock;

StepLoop::StepLoop(FlatCallable step, std::unique_ptr<Batches> batches, LoopOptions options)
    : step_(std::move(step)), batches_(std::move(batches)), options_(std::move(options)) {
  if (options_.steps_per_epoch && *options_.steps_per_epoch < 1)
    user_error(options_.name, ": steps_per_epoch is ", *options_.steps_per_epoch, ", it must be at least 1");
}

void StepLoop::begin_walk() {
  batches_->begin();
  walking_ = true;
  walked_ = 0;
}

void StepLoop::begin_epoch() {
  // With steps_per_epoch an epoch goes on where the one before ended, until the data is used up.
  if (!walking_ || !options_.steps_per_epoch) begin_walk();
  done_ = 0;
  ended_ = false;
  left_ = 0;
  if (profile::Recorder::is_on()) profile::Recorder::get().epoch(epochs_);
  ++epochs_;
}

int64_t StepLoop::run(int64_t steps, double seconds, Where where) {
  return frontend::for_caller(where, [&] {
    const bool timed = seconds != std::numeric_limits<double>::infinity();
    const Clock::time_point end =
        timed ? Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)) : Clock::time_point{};
    // Between two calls the program does what it likes, and the next step waits for it.
    if (left_ != 0) profile::record_since(profile::Kind::Callback, "the program, between steps", left_);
    int64_t count = 0;
    while (count < steps && !ended_ && !(options_.stops && options_.stops())) {
      if (!take_step()) break;
      ++count;
      if (timed && Clock::now() >= end) break;
    }
    left_ = profile::Recorder::is_on() && !ended_ ? profile::now() : 0;
    return count;
  });
}

std::optional<int64_t> StepLoop::steps() const { return options_.steps_per_epoch ? options_.steps_per_epoch : batches_->steps(); }

// The next batch, of a new walk when the last one used up the data without knowing.
void StepLoop::take_batch() {
  const profile::Span waiting(profile::Kind::Pipeline, "the next batch");
  if (walking_ && !batches_->next()) {
    walking_ = false;
    if (done_ == 0 && walked_ > 0) {  // the epoch before used up the data without knowing
      begin_walk();
      walking_ = batches_->next();
    }
  }
}

bool StepLoop::take_step() {
  const profile::Span taken(profile::Kind::Step, options_.name, static_cast<uint64_t>(done_));
  take_batch();
  if (!walking_) {
    if (done_ == 0) user_error(options_.name, ": there is no data, the dataset gave no batch");
    end_of_data();
    return false;
  }
  if (options_.before) options_.before(*batches_);
  step_.call(batches_->batch(), results_, std::source_location::current());
  if (options_.after) options_.after(results_);
  ++done_;
  ++walked_;
  if (const auto all = batches_->steps(); all && walked_ >= *all) walking_ = false;
  if (options_.steps_per_epoch && done_ >= *options_.steps_per_epoch)
    ended_ = true;
  else if (!walking_)
    end_of_data();
  return true;
}

void StepLoop::end_of_data() {
  ended_ = true;
  if (!options_.steps_per_epoch) return;
  const char* hint =
      batches_->rows() ? "arrays are walked over once an epoch; steps_per_epoch is for less" : "repeat() makes a dataset go on";
  std::fprintf(stderr, "%s: the data ended after %lld of %lld steps\n  hint: %s\n", options_.name.c_str(), static_cast<long long>(done_),
               static_cast<long long>(*options_.steps_per_epoch), hint);
}

// Four numbers, then the place in the data, which may be any bytes.
std::string StepLoop::position() const {
  return cat(done_, " ", walked_, " ", static_cast<int>(walking_), " ", static_cast<int>(ended_), "\n", batches_->save());
}

void StepLoop::restore(const std::string& position) {
  const size_t end = position.find('\n');
  std::istringstream in(position.substr(0, end));
  int64_t done = 0, walked = 0;
  bool walking = false, ended = false;
  if (end == std::string::npos || !(in >> done >> walked >> walking >> ended) || done < 0 || walked < 0)
    user_error(options_.name, ": this is no position of a loop: '", position.substr(0, 60), "'");
  batches_->restore(position.substr(end + 1));
  done_ = done;
  walked_ = walked;
  walking_ = walking;
  ended_ = ended;
}

}  // namespace tandem::train
