#include "jobs/notify.hpp"

#include <fmt/format.h>

#include "jobs/protocol.hpp"
#include "servers/action.hpp"

namespace remote::jobs {

std::string notify_line(std::string_view key, std::string_view value) {
  return value.empty() ? "" : fmt::format("{} {}\n", key, percent_encode(value));
}

std::string notify_lines(const config::Notify& notify, const std::string& project) {
  return (notify.url.empty() ? notify_line("notify_command", notify.command)
                             : notify_line("url", notify.url) + notify_line("shape", notify.shape)) +
         notify_line("folder", project);
}

void NotifyAnswer::take(servers::AnswerLine& line) {
  if (line.kind() != "notify") {
    line.refuse_kind();
  }
  sent = line.choice<bool>(line.word(), {{"sent", true}, {"failed", false}}, "an unknown word");
  text = line.rest();
}

NotifyAnswer try_notify(ssh::Connection& connection, const std::string& lines, const std::string& activate,
                        const Cancel& cancel) {
  servers::Action<NotifyAnswer> action;
  action.what = "notify";
  action.script.set("request", lines)
      .set("activate", activate)
      .add("actions/notify_test.sh")
      .call("notify_test");
  action.timeout = std::chrono::seconds(90);
  return servers::run_action(connection, action, cancel, NotifyAnswer());
}

}  // namespace remote::jobs
