#pragma once

#include <optional>
#include <string>

#include "agent/host/host.hpp"
#include "agent/job/own_python.hpp"
#include "agent/notify/compose.hpp"
#include "agent/notify/deliver.hpp"

namespace remote::agent {

// Sends notifications, with one attempt each.
class NotificationSender {
 public:
  // `program` is the text of post.py, which is used for URLs because TLS needs the server's certificates and
  // libraries. `activate` is shell text that enters the Python environment, for servers without Python on
  // PATH.
  NotificationSender(const Host& host, std::string program, std::string activate);

  SendResult send(const wire::NotifySpec& spec, const Notification& notification);

 private:
  SendResult post(const wire::NotifySpec& spec, const Notification& notification);
  SendResult run_command(const wire::NotifySpec& spec, const Notification& notification);

  const Host& host_;
  std::string program_;
  std::string activate_;
  std::optional<OwnPython> python_;
};

}  // namespace remote::agent
