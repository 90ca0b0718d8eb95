#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "agent/notify/compose.hpp"
#include "wire/notify.hpp"

namespace remote::agent {

// Sends a test notification.
wire::TryNotifyReply try_notify(const Host& host, const wire::NotificationToTry& request);

// The input of run_notify(), as JSON on stdin.
struct NotifyTask {
  Notification notification;
  std::string activate;  // see NotificationSender

  static constexpr auto fields() {
    return wire::field_list(wire::field("notification", &NotifyTask::notification),
                            wire::field("activate", &NotifyTask::activate));
  }
};

// `remote-agent notify end|hang JOB_FOLDER PROGRAM_FOLDER`: delivers the notification about the end or a hang
// of the launch with this first job. Tries for an hour, for a hang ten minutes. Returns the exit status.
int run_notify(int count, char** words);

}  // namespace remote::agent
