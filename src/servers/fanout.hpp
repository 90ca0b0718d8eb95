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

// The outcome of one item of a fan-out: a value or an error. This way, a failed server never hides the
// others.
template <typename Value>
struct Outcome {
  std::optional<Value> value;
  std::optional<Error> error;
  bool ok() const { return value.has_value(); }
};

// Throws Error if this process cannot open enough files for connections to this many servers.
void need_open_files(std::size_t servers);

// Calls `work(item, index)` for every item in parallel, each in its own thread (at most `width` at once), and
// returns the outcomes in the order of the items. `name` returns the server name of an item, for errors. If
// any thread was interrupted, throws Interrupted after all threads have ended. `work` runs on several threads
// at once, so shared data needs protection. Throws Error before anything starts if this process cannot open
// enough files.
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
        break;  // this machine allows no more threads, so fewer do all the work
      }
    }
    if (threads.empty()) {
      worker();
    }
  }  // joins the threads
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

// The errors of the failed items.
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

// Returns the values, or throws the first error.
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
