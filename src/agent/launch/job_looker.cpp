#include "agent/launch/job_looker.hpp"

#include <stdexcept>
#include <utility>

#include <sys/eventfd.h>

namespace remote::agent {

JobLooker::JobLooker() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), task_(wake_.get()) {
  if (!wake_) {
    throw std::runtime_error("no file can be opened");
  }
}

void JobLooker::start(std::vector<Order> orders, rules::Seconds now) {
  began_ = now;
  is_busy_ = true;
  const auto look = [this, orders = std::move(orders)] {
    for (const Order& order : orders) {
      found_.push_back({order.index, order.job->look(order.rank)});
    }
  };
  if (!task_.start(look)) {  // at the process limit
    look();
    ::eventfd_write(wake_.get(), 1);
  }
}

std::vector<JobLooker::Found> JobLooker::take() {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  task_.finish();
  is_busy_ = false;
  return std::exchange(found_, {});
}

}  // namespace remote::agent
