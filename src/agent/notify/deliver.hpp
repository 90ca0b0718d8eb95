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
  failed,      // can be retried
  unknown,     // it may or may not have arrived
  impossible,  // must not be retried
};

struct SendResult {
  Arrival arrival = Arrival::failed;
  std::string answer{};  // the response, or the reason of the failure; never contains the URL
};

// The delivery of a notification, which is configured by the file `notify` in a job's folder.
struct Delivery {
  Path folder;
  bool is_about_hang = false;  // the launch has not ended; each hang is reported
  std::chrono::milliseconds limit{};
  std::function<SendResult(const wire::NotifySpec&)> send{};
  std::chrono::milliseconds first_pause = std::chrono::seconds(5);
  // Tests replace these.
  std::function<std::chrono::milliseconds()> read_clock = read_boot_clock;
  std::function<void(std::chrono::milliseconds)> sleep = [](auto pause) {
    ::usleep(static_cast<useconds_t>(pause.count() * 1000));
  };
};

// Tries repeatedly until the notification is sent or the limit is reached. `notify.mark` exists during each
// attempt, so that if this process dies, the next one does not send it again. `notify.result` receives the
// outcome; then `notify`, which is secret, is removed. If another process is delivering the same
// notification, waits for it.
void deliver_notification(const Delivery& delivery);

}  // namespace remote::agent
