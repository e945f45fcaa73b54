// What the driver gives is given back by the object that holds it: modules, streams, events, graphs, memory.
#pragma once

#include <utility>

#include "runtime/cuda/driver.h"

namespace stitchwork::cuda {

/// A handle and the driver function that gives it back; none where made without. It lives no longer than its
/// driver. What fails at giving back has failed before, and was reported then.
template <typename Handle, Result (*Driver::*kGiveBack)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(const Driver& driver, Handle handle) : driver_(&driver), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (driver_ != nullptr) (driver_->*kGiveBack)(handle_);
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return driver_ != nullptr; }

 private:
  const Driver* driver_ = nullptr;
  Handle handle_{};
};

/// A device's primary context, retained; named by the device, as the driver gives it back.
using OwnedContext = Owned<DeviceId, &Driver::context_release>;
using OwnedStream = Owned<Stream, &Driver::stream_destroy>;
using OwnedEvent = Owned<Event, &Driver::event_destroy>;
using OwnedModule = Owned<Module, &Driver::module_unload>;
using OwnedMemory = Owned<Pointer, &Driver::release>;
using OwnedGraph = Owned<Graph, &Driver::graph_destroy>;
using OwnedGraphExec = Owned<GraphExec, &Driver::graph_exec_destroy>;

/// Records what is put into a stream in place of doing it, until `end` or, at the latest, its own end.
class Capture {
 public:
  Capture(const Driver& driver, Stream stream)
      : driver_(driver),
        stream_(stream),
        open_(driver.capture_begin(stream, kCaptureThreadLocal) == kSuccess) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { end(); }

  /// Whether the stream is recorded.
  explicit operator bool() const { return open_; }
  /// What was recorded; none where the driver refused a part of it.
  OwnedGraph end() {
    if (!std::exchange(open_, false)) return {};
    Graph graph = nullptr;
    const Result result = driver_.capture_end(stream_, &graph);
    OwnedGraph recorded;
    if (graph != nullptr) recorded = OwnedGraph(driver_, graph);
    return result == kSuccess ? std::move(recorded) : OwnedGraph();
  }

 private:
  const Driver& driver_;
  Stream stream_;
  bool open_;
};

}  // namespace stitchwork::cuda
