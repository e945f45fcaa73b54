// Steps on streams: they are done one after the other the first time, and on their streams when repeated.
#include <set>
#include <utility>

#include "runtime/cuda/backend.h"

namespace stitchwork::cuda {

void CudaBackend::begin_program() {
  steps_.clear();
  step_us_.clear();
  repeated_.reset();
  events_.clear();
  points_.clear();
  last_on_.clear();
  ended_.clear();
  begun_step_.reset();
  waits_.clear();
  begun_ = {};
  for (const auto& lane : lanes_) lane->ended = {};
  lane_ = 0;
  once_ = false;
}

void CudaBackend::begin_step(std::size_t index, int stream, std::span<const int> waits, bool once) {
  if (begun_step_ && last_on_.contains(lane_)) ended_[*begun_step_] = last_on_.at(lane_);
  begun_step_ = index;
  once_ = once;
  lane_ = static_cast<std::size_t>(stream);
  waits_.clear();
  for (const int wait : waits)  // one that does nothing, behind nothing, is not waited for
    if (const auto ended = ended_.find(static_cast<std::size_t>(wait)); ended != ended_.end())
      waits_.push_back(ended->second);
}

CudaBackend::Lane& CudaBackend::lane(std::size_t index) {
  while (lanes_.size() <= index) {
    Stream stream = nullptr;
    driver_->check(driver_->stream_create(&stream, kNonBlockingStream), "cuStreamCreate", gpu_.name);
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->stream = OwnedStream(*driver_, stream);
  }
  return *lanes_[index];
}

OwnedEvent CudaBackend::make_event(unsigned flags) {
  Event event = nullptr;
  driver_->check(driver_->event_create(&event, flags), "cuEventCreate", gpu_.name);
  return {*driver_, event};
}

void CudaBackend::prepare_lanes() {
  std::set<std::size_t> used;
  for (const Step& step : steps_) {
    used.insert(step.lane);
    for (const std::size_t wait : step.waits)
      if (!events_.contains(wait)) events_.emplace(wait, make_event(kEventWithoutTiming));
  }
  for (const std::size_t index : used) {
    if (index == 0) continue;
    if (!begun_) begun_ = make_event(kEventWithoutTiming);
    Lane& made = lane(index);
    made.ended = make_event(kEventWithoutTiming);
    // Calls of one handle on several streams would share its workspace (cuBLAS, 2.1.4 "Results
    // reproducibility").
    if (lanes_[0]->blas && !made.blas) made.blas = libraries_.blas();
    if (lanes_[0]->dnn && !made.dnn) made.dnn = libraries_.dnn();
  }
}

void CudaBackend::perform_all(bool points) {
  const Stream first = lanes_[0]->stream.get();
  const auto record = [&](const OwnedEvent& event, Stream stream) {
    driver_->check(driver_->event_record(event.get(), stream), "cuEventRecord", "streams");
  };
  const auto wait = [&](Stream stream, const OwnedEvent& event) {
    driver_->check(driver_->stream_wait_event(stream, event.get(), 0), "cuStreamWaitEvent", "streams");
  };
  if (begun_) record(begun_, first);
  for (const auto& lane : lanes_)
    if (lane->ended) wait(lane->stream.get(), begun_);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].once) continue;
    const Lane& lane = *lanes_[steps_[i].lane];
    for (const std::size_t other : steps_[i].waits) wait(lane.stream.get(), events_.at(other));
    perform(steps_[i], lane);
    if (const auto event = events_.find(i); event != events_.end()) record(event->second, lane.stream.get());
    if (const auto point = points_.find(i); points && point != points_.end())
      record(point->second, lane.stream.get());
  }
  for (const auto& lane : lanes_)
    if (lane->ended) {
      record(lane->ended, lane->stream.get());
      wait(first, lane->ended);
    }
}

}  // namespace stitchwork::cuda
