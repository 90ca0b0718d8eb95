#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "agent/notify/compose.hpp"
#include "rules/launch_policy.hpp"

// The notification about a launch (docs/notify.md). A process of agent/notify sends it.

namespace remote::agent {

// Texts for the user. The caller adds the last lines: those of verdict.rank if the launch failed, otherwise
// those of its own first job.
Notification describe_end(const rules::LaunchVerdict& verdict);
Notification describe_hang(const wire::Hang& hang, bool restarts);

// The last lines of the first of these files that is not empty, for a notification and for wire::LastLines.
// Replaces characters that a terminal would interpret.
std::string read_notification_lines(const Path& job_folder, const std::vector<std::string>& files);
// Cleans the text of wire::LastLines in the same way, because it comes from another server.
std::string clean_notification_lines(std::string_view text);

// Sends the notifications of one launch, on its coordinator.
class Notifier {
 public:
  // `program` is the folder of the server program. `job_folder` is that of the launch's first job, with the
  // file `notify`; without that file nothing is sent. `activate` is shell text that enters the Python
  // environment, for servers without Python on PATH.
  Notifier(const Host& host, Path program, Path job_folder, std::string activate);

  // Starts a process that notifies about a hang. It tries for ten minutes and may outlive this process.
  void start_about_hang(const Notification& notification);
  // Notifies about the end of the launch, once. Tries for an hour, and blocks until then. `notify.result`
  // receives the outcome.
  void send_about_end(const Notification& notification);

 private:
  std::vector<std::string> list_words(const std::string& about) const;
  Descriptor hold_task(const Notification& notification) const;
  void give_up(const std::string& result);

  const Host& host_;
  Path program_;
  Path folder_;
  std::string activate_;
};

}  // namespace remote::agent
