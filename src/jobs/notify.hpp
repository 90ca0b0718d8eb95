#pragma once

#include <string>
#include <string_view>

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "servers/answer.hpp"
#include "ssh/connection.hpp"

// Who is told, by the servers, when a launch has ended (docs/protocol.md, The lifeline).

namespace remote::jobs {

// A line of the file `notify`; none for an empty value.
std::string notify_line(std::string_view key, std::string_view value);
// Those of whom to tell: a secret.
std::string notify_lines(const config::Notify& notify, const std::string& project);

// What notify_test.sh answers.
struct NotifyAnswer {
  bool sent = false;
  std::string text{};
  void take(servers::AnswerLine& line);
};

// Tells them now that this is a test. `activate`: sh text that enters the server's Python environment. Throws
// Error.
NotifyAnswer try_notify(ssh::Connection& connection, const std::string& lines, const std::string& activate,
                        const Cancel& cancel);

}  // namespace remote::jobs
