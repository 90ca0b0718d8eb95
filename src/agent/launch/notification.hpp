#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "agent/notify/compose.hpp"
#include "rules/launch_policy.hpp"

// The notification about a launch (docs/notify.md), which a process of agent/notify sends.

namespace remote::agent {

// For people. The caller adds the lines: of verdict.rank if the launch failed, else of its own first job.
Notification describe_end(const rules::LaunchVerdict& verdict);
Notification describe_hang(const wire::Hang& hang, bool restarts);

// The last lines of the first of these files that has any, for a notification and for wire::LastLines.
// Characters that a terminal would obey are replaced.
std::string read_notification_lines(const Path& job_folder, const std::vector<std::string>& files);
// Cleans the text of wire::LastLines in the same way: it is another server's.
std::string clean_notification_lines(std::string_view text);

// Sends the notifications of one launch, on its coordinator.
class Notifier {
 public:
  // `program`: the folder of the server program. `job_folder`: of the launch's first job, with the file
  // `notify`; without it nothing is sent. `activate`: sh text that enters the Python environment, for servers
  // without Python on PATH.
  Notifier(const Host& host, Path program, Path job_folder, std::string activate);

  // Starts a process that notifies about a hang, tries for ten minutes, and outlives this one.
  void start_about_hang(const Notification& notification);
  // Notifies about the end of the launch, once. Tries for an hour, and blocks until then. `notify.result` has
  // the outcome.
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
