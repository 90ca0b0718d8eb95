#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "servers/facts.hpp"

// What a server answers for the plan of a launch.

namespace remote::servers {
namespace {

int port(AnswerLine& line) {
  return line.number(1, 65535);
}

// What is left of the line, for the name of a thing.
std::string full_name(AnswerLine& line) {
  const std::string_view found = line.rest();
  const bool good =
      !found.empty() && found.size() <= 64 &&
      std::none_of(found.begin(), found.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!good) {
    line.refuse("a name is wrong");
  }
  return std::string(found);
}

void read_route(AnswerLine& line, FactsAnswer& answer) {
  const std::string_view how = line.word();
  if (how == "via") {
    answer.interface = line.name();
    answer.master_address = line.name(".:%");
    if (line.more()) {
      answer.source = line.name(".:%");
    }
  } else if (how == "unknown") {
    answer.master_address = line.name(".:%");
  } else if (how == "unresolved") {
    answer.resolved = false;
  } else {
    line.refuse("a way is wrong");
  }
}

void read_port(AnswerLine& line, FactsAnswer& answer) {
  port(line);
  answer.port_free =
      line.choice<bool>(line.word(), {{"free", true}, {"taken", false}}, "a port's state is wrong");
  if (*answer.port_free) {
    return;
  }
  PortHolder& holder = answer.holder.emplace();
  holder.user = line.name();
  if (line.more()) {
    holder.pid = line.number(1, 1 << 30);
    holder.program = full_name(line);
  }
}

std::optional<MpiFacts> read_mpi(AnswerLine& line) {
  const std::string_view kind = line.word();
  if (kind == "none") {
    return std::nullopt;
  }
  MpiFacts mpi;
  mpi.hydra = line.choice<bool>(kind, {{"openmpi", false}, {"hydra", true}}, "an MPI is wrong");
  mpi.version = line.name();
  mpi.has_daemon = line.choice<bool>(line.word(), {{"whole", true}, {"client", false}}, "an MPI is wrong");
  mpi.root = line.choice<bool>(line.word(), {{"root", true}, {"user", false}}, "a login is wrong");
  return mpi;
}

}  // namespace

bool FactsAnswer::take_launch(std::string_view key, AnswerLine& line) {
  if (key == "route") {
    read_route(line, *this);
  } else if (key == "port") {
    read_port(line, *this);
  } else if (key == "mpi") {
    mpi = read_mpi(line);
  } else if (key == "suggest") {
    suggested_port = port(line);
  } else if (key == "second") {
    second_port = port(line);
  } else if (key == "missing") {
    missing = line.name();
  } else {
    return false;
  }
  return true;
}

}  // namespace remote::servers
