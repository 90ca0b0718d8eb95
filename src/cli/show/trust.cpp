#include "cli/show/trust.hpp"

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::cli {
namespace {

std::string words_of(const Demand& demand) {
  const std::string who = demand.server.empty() ? "" : demand.server + ": ";
  using Kind = Demand::Kind;
  switch (demand.kind) {
    case Kind::folder:
      return "to be used although others can change it: " + demand.value;
    case Kind::password_command:
      return fmt::format("{}to run a command here, whose output goes to {} as the password: {}", who,
                         demand.to, demand.value);
    case Kind::password_env:
      return fmt::format("{}to send the value of your variable {} to {} as the password", who, demand.value,
                         demand.to);
    case Kind::known_hosts:
      return fmt::format("{}to write host keys to a file outside the project: {}", who, demand.value);
    case Kind::local_folder:
      return fmt::format("to write to a folder outside the project, which {} leads to: {}", demand.value,
                         demand.to);
    case Kind::link:
      return fmt::format("to send the target of a link, outside the project: {} -> {}", demand.value,
                         demand.to);
    case Kind::sandbox_key:
      break;
  }
  return "";
}

}  // namespace

void show_demands(ui::Terminal& terminal, const std::vector<Demand>& demands) {
  terminal.err("This project wants:\n");
  for (const Demand& demand : demands) {
    const std::string place = demand.place.empty() ? "" : " (" + demand.place + ")";
    terminal.err("  - " + visible_line(words_of(demand)) + place + "\n");
  }
}

}  // namespace remote::cli
