#include "agent/job/own_python.hpp"

#include <chrono>

#include "agent/facts/activation.hpp"

namespace remote::agent {

OwnPython OwnPython::of(const Host& host, const Path& program) {
  OwnPython python{.program = program, .options = {"-B", "-S"}};
  if (host.variable("PYTHONHOME").empty()) {
    python.options.emplace_back("-I");
  }
  return python;
}

std::vector<std::string> OwnPython::command(const std::vector<std::string>& words) const {
  std::vector<std::string> argv{program.string()};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

std::optional<OwnPython> find_own_python(const Host& host, const std::string& activation) {
  Path program = activate(host, {.python = true}, std::chrono::seconds(5)).python;
  if (program.empty() && !activation.empty()) {
    program = activate(host, {.activate = activation, .python = true}).python;
  }
  return program.empty() ? std::nullopt : std::optional(OwnPython::of(host, program));
}

}  // namespace remote::agent
