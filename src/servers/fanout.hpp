#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

#include <remote/error.hpp>

#include "base/error_of.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"

namespace remote::servers {

// How one item of a fan-out ended: with a value, or with an error. One dead server never hides the others.
template <typename Value>
struct Outcome {
  std::optional<Value> value;
  std::optional<Error> error;
  bool ok() const { return value.has_value(); }
};

// Throws Error where this process may not open the files that connections to so many servers take.
void need_open_files(std::size_t servers);

// Calls `work(item, index)` for every item side by side, each on a thread of its own (at most `width` at
// once), and returns the outcomes in the order of the items. `name` gives the server's name of an item, for
// errors. Throws Interrupted, after all threads have ended, when one of them was. Threads: `work` runs on
// several threads at once; what it shares needs its own protection. Throws Error before anything is begun
// where this process may not open as many files.
template <typename Item, typename Name, typename Work>
auto fan_out(const std::vector<Item>& items, const Name& name, const Work& work, std::size_t width = 256)
    -> std::vector<Outcome<std::invoke_result_t<Work, const Item&, std::size_t>>> {
  using Value = std::invoke_result_t<Work, const Item&, std::size_t>;
  std::vector<Outcome<Value>> outcomes(items.size());
  std::atomic<std::size_t> next{0};
  const Stopwatch watch;
  std::vector<double> took(items.size());
  std::atomic<bool> interrupted{false};
  const auto worker = [&] {
    for (std::size_t i = next++; i < items.size(); i = next++) {
      try {
        outcomes[i].value.emplace(work(items[i], i));
      } catch (const Interrupted&) {
        interrupted = true;
      } catch (const std::exception& error) {
        outcomes[i].error.emplace(error_of(error).on(std::invoke(name, items[i])));
      }
      took[i] = watch.seconds();
    }
  };
  if (items.size() <= 1) {
    worker();
  } else {
    need_open_files(items.size());
    log_info("", "{} servers side by side", items.size());
    std::vector<JoiningThread> threads;
    const std::size_t count = std::min(width, items.size());
    threads.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      try {
        threads.emplace_back(worker);
      } catch (const std::system_error&) {
        break;  // this machine allows no more: fewer do all of it
      }
    }
    if (threads.empty()) {
      worker();
    }
  }  // joins
  if (items.size() > 1) {
    const auto last = static_cast<std::size_t>(std::ranges::max_element(took) - took.begin());
    log_info("", "{} servers done after {}, the last of them {}", items.size(), watch.text(),
             std::invoke(name, items[last]));
  }
  if (interrupted) {
    throw Interrupted();
  }
  return outcomes;
}

// The errors of those that failed.
template <typename Value>
std::vector<Error> errors_of(const std::vector<Outcome<Value>>& outcomes) {
  std::vector<Error> errors;
  for (const Outcome<Value>& outcome : outcomes) {
    if (!outcome.ok()) {
      errors.push_back(*outcome.error);
    }
  }
  return errors;
}

// The values. Throws the first error.
template <typename Value>
std::vector<Value> values_of(const std::vector<Outcome<Value>>& outcomes) {
  std::vector<Value> values;
  for (const Outcome<Value>& outcome : outcomes) {
    if (!outcome.ok()) {
      throw *outcome.error;
    }
    values.push_back(*outcome.value);
  }
  return values;
}

}  // namespace remote::servers
