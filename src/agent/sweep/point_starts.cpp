#include "agent/sweep/point_starts.hpp"

#include <algorithm>
#include <stdexcept>

#include <poll.h>
#include <sys/eventfd.h>

#include "agent/launch/clock.hpp"

namespace remote::agent {

PointStarts::PointStarts() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) {
    throw std::runtime_error("no file can be opened");
  }
}

std::optional<wire::StartedJob> PointStarts::start(const std::string& point, Start start,
                                                   rules::Seconds patience) {
  auto one = std::make_unique<UnderWay>(wake_.get());
  const auto work = [result = &one->result, start = std::move(start)] {
    try {
      *result = start();
    } catch (const std::exception& error) {
      *result = {.id = {}, .outcome = wire::StartOutcome::failed, .reason = error.what()};
    }
  };
  if (!one->task.start(work)) {  // at the process limit
    work();
    return std::move(one->result);
  }
  const rules::Seconds end = read_clock() + patience;
  while (!one->task.finish()) {
    const rules::Seconds left = end - read_clock();
    if (left <= rules::Seconds(0)) {
      late_.insert_or_assign(point, std::move(one));
      return std::nullopt;
    }
    pollfd ready{wake_.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(left.count() * 1000) + 1);
    eventfd_t count = 0;
    ::eventfd_read(wake_.get(), &count);
  }
  return std::move(one->result);
}

std::vector<std::pair<std::string, wire::StartedJob>> PointStarts::take_late() {
  std::vector<std::pair<std::string, wire::StartedJob>> results;
  for (auto one = late_.begin(); one != late_.end();) {
    if (one->second->task.finish()) {
      results.emplace_back(one->first, std::move(one->second->result));
      one = late_.erase(one);
    } else {
      ++one;
    }
  }
  return results;
}

}  // namespace remote::agent
