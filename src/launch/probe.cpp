#include "launch/probe.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "scripts/scripts.hpp"

namespace remote::launch {
namespace {

constexpr std::string_view mark = "@remote1 ";

[[noreturn]] void refuse(std::string_view line, const char* why) {
  throw Error("the server's answer is not understood",
              fmt::format("{} in '{}'", why, visible_line(line, 200)),
              "is another version of remote at work there, or does a shell start file print such lines?");
}

// One line of the answer, word by word; every complaint shows the line.
class Line {
 public:
  explicit Line(std::string_view line) : line_(line), rest_(line.substr(mark.size())) {}

  std::string_view word() {
    const std::size_t end = rest_.find(' ');
    const std::string_view found = rest_.substr(0, end);
    if (found.empty()) {
      refuse(line_, "a word is missing");
    }
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (end != std::string_view::npos && rest_.empty()) {
      refuse(line_, "a blank at the end");
    }
    return found;
  }
  int number(int low, int high) {
    const auto value = parse_number<int>(word());
    if (!value || *value < low || *value > high) {
      refuse(line_, "a number is wrong");
    }
    return *value;
  }
  // A word of letters, digits and some marks: what may become part of a message or of a variable.
  std::string name(std::string_view marks = "._-") {
    const std::string_view found = word();
    const bool good = found.size() <= 255 && std::all_of(found.begin(), found.end(), [&](unsigned char c) {
                        return (c < 128 && std::isalnum(c) != 0) ||
                               marks.find(static_cast<char>(c)) != std::string_view::npos;
                      });
    if (!good) {
      refuse(line_, "a name is wrong");
    }
    return std::string(found);
  }
  std::string address() { return name(".:%"); }
  // What is left, printable; for the name of a program.
  std::string text() {
    const std::string_view found = rest_;
    rest_ = {};
    const bool good =
        !found.empty() && found.size() <= 64 &&
        std::none_of(found.begin(), found.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (!good) {
      refuse(line_, "a program's name is wrong");
    }
    return std::string(found);
  }
  bool more() const { return !rest_.empty(); }
  void end() const {
    if (more()) {
      refuse(line_, "too many words");
    }
  }
  [[noreturn]] void wrong(const char* why) const { refuse(line_, why); }

 private:
  std::string_view line_;
  std::string_view rest_;
};

void read_route(Line& line, ProbeAnswer& answer) {
  const std::string_view how = line.word();
  if (how == "via") {
    answer.interface = line.name();
    answer.master_address = line.address();
    if (line.more()) {
      answer.source = line.address();
    }
  } else if (how == "unknown") {
    answer.master_address = line.address();
  } else if (how == "unresolved") {
    answer.resolved = false;
  } else {
    line.wrong("a way is wrong");
  }
}

void read_port(Line& line, ProbeAnswer& answer) {
  line.number(1, 65535);
  const std::string_view state = line.word();
  if (state != "free" && state != "taken") {
    line.wrong("a port's state is wrong");
  }
  answer.port_free = state == "free";
  if (state == "free") {
    return;
  }
  PortHolder holder;
  holder.user = line.name();
  if (line.more()) {
    holder.pid = line.number(1, 1 << 30);
    holder.program = line.text();
  }
  answer.holder = holder;
}

void read_line(Line& line, std::string_view key, ProbeAnswer& answer) {
  if (key == "host") {
    answer.host = line.name();
  } else if (key == "cpus") {
    answer.cpus = line.number(1, 1 << 20);
  } else if (key == "gpus") {
    answer.gpus = line.number(0, 1 << 12);
  } else if (key == "python") {
    const std::string version = line.name(".");
    if (version != "none") {
      answer.python = version;
    }
  } else if (key == "route") {
    read_route(line, answer);
  } else if (key == "port") {
    read_port(line, answer);
  } else if (key == "suggest") {
    answer.suggested_port = line.number(1, 65535);
  } else if (key == "second") {
    answer.second_port = line.number(1, 65535);
  } else {
    line.wrong("a key is not known");
  }
  line.end();
}

}  // namespace

std::string probe_script(const ProbeRequest& request) {
  return fmt::format("activate={}\naddr={}\nport={}\nip={}\n{}", shell_quote(request.activate),
                     shell_quote(request.master_addr),
                     request.master_port ? std::to_string(*request.master_port) : "''",
                     shell_quote(request.ip_program), scripts::text("probe.sh"));
}

ProbeAnswer parse_probe(std::string_view out) {
  ProbeAnswer answer;
  std::set<std::string, std::less<>> seen;
  bool ended = false;
  while (!out.empty()) {
    const std::size_t end = out.find('\n');
    const std::string_view text = out.substr(0, end);
    out.remove_prefix(end == std::string_view::npos ? out.size() : end + 1);
    if (!text.starts_with(mark)) {
      continue;
    }
    Line line(text);
    if (ended) {
      line.wrong("a line after the end");
    }
    const std::string_view kind = line.word();
    if (kind == "end") {
      line.end();
      ended = true;
      continue;
    }
    if (kind != "probe") {
      line.wrong("not an answer to a probe");
    }
    const std::string_view key = line.word();
    if (!seen.emplace(key).second) {
      line.wrong("a key stands twice");
    }
    read_line(line, key, answer);
  }
  if (!ended && seen.empty()) {
    throw login_shell_ended();
  }
  if (!ended) {
    throw Error("the server's answer is not understood", "it was cut short",
                "look at what its login shell prints");
  }
  for (const std::string_view key : {"host", "cpus", "gpus", "python", "route"}) {
    if (!seen.contains(key)) {
      throw Error("the server's answer is not understood", fmt::format("nothing about '{}' in it", key));
    }
  }
  return answer;
}

int choose_port(const ProbeAnswer& master, std::optional<int> wanted) {
  if (wanted && *wanted != 0) {
    if (master.port_free.value_or(true)) {
      return *wanted;
    }
    std::string holder = "it is taken";
    if (master.holder && master.holder->pid) {
      holder += fmt::format(" by {} (pid {}, user {})", master.holder->program, *master.holder->pid,
                            master.holder->user);
    } else if (master.holder) {
      holder += fmt::format(" by a process of user {}", master.holder->user);
    }
    throw Error::usage(
        fmt::format("cannot use port {} on the master", *wanted), holder,
        master.suggested_port
            ? fmt::format("leave --master-port out, or use one that is free: {}", *master.suggested_port)
            : "leave --master-port out");
  }
  if (!master.suggested_port) {
    throw Error("cannot find a free port on the master", "all from 20000 to 32767 are in use",
                "name one: --master-port N");
  }
  return *master.suggested_port;
}

}  // namespace remote::launch
