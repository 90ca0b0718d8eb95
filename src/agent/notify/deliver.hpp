#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <unistd.h>

#include "agent/host/path.hpp"
#include "agent/host/processes.hpp"
#include "wire/notify.hpp"

namespace remote::agent {

enum class Arrival {
  sent,
  failed,      // try it again
  unknown,     // whether it arrived
  impossible,  // do not try it again
};

struct SendResult {
  Arrival arrival = Arrival::failed;
  std::string answer{};  // the response, or the reason of the failure; never the URL
};

// The delivery of one notification, by the file `notify` of a job's folder.
struct Delivery {
  Path folder;
  bool is_about_hang = false;  // the launch has not ended; each hang is reported
  std::chrono::milliseconds limit{};
  std::function<SendResult(const wire::NotifySpec&)> send{};
  std::chrono::milliseconds first_pause = std::chrono::seconds(5);
  // Of tests.
  std::function<std::chrono::milliseconds()> read_clock = read_boot_clock;
  std::function<void(std::chrono::milliseconds)> sleep = [](auto pause) {
    ::usleep(static_cast<useconds_t>(pause.count() * 1000));
  };
};

// Tries again and again until it is sent or the limit is reached. `notify.mark` exists during each attempt,
// so that the next process does not send it twice if this one dies; `notify.result` gets the outcome, and
// then `notify`, which is a secret, is removed. Waits for another process that delivers the same.
void deliver_notification(const Delivery& delivery);

}  // namespace remote::agent
