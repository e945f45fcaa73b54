// What was found out about an immutable object, kept with it.
#pragma once

#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>
#include <vector>

namespace stitchwork {

/// A member of an object that is not changed once it is built and asked. Copies start without anything, since
/// a copy may be changed before it is asked itself.
class Derived {
 public:
  Derived() = default;
  Derived(const Derived&) noexcept {}
  Derived(Derived&&) noexcept {}
  Derived& operator=(const Derived&) noexcept {
    kept_.clear();
    return *this;
  }
  Derived& operator=(Derived&&) noexcept {
    kept_.clear();
    return *this;
  }
  ~Derived() = default;

  /// The object's one T, made when it is first asked for. T guards itself against several threads.
  template <typename T>
  T& get() const {
    const std::lock_guard lock(mutex_);
    for (const auto& [type, kept] : kept_)
      if (type == typeid(T)) return *static_cast<T*>(kept.get());
    return *static_cast<T*>(kept_.emplace_back(typeid(T), std::make_shared<T>()).second.get());
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::type_index, std::shared_ptr<void>>> kept_;
};

}  // namespace stitchwork
