#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <remote/error.hpp>

#include "promise.hpp"
#include "servers/authorize.hpp"
#include "servers/facts.hpp"

// What a server says of itself, and of a key that was put there, is any bytes.

namespace {

using namespace remote;
using namespace remote::fuzz;

bool fit_for_a_line(const std::string& text) {
  for (const unsigned char c : text) {
    if (c < 0x20 || c == 0x7f) {
      return false;
    }
  }
  return text.size() < 2000;
}

bool is_port(int port) {
  return port >= 1 && port <= 65535;
}

void check_launch(const servers::FactsAnswer& answer) {
  require(answer.cpus() >= 1 && answer.gpus() >= 0 && answer.cpus_online >= 1, "counts are counts");
  require(!answer.suggested_port || is_port(*answer.suggested_port), "ports are ports");
  require(!answer.interface || answer.interface->find_first_of(" \n") == std::string::npos,
          "an interface is one word");
  require(!answer.holder || !answer.holder->pid || *answer.holder->pid > 0, "pids are pids");
  try {
    require(is_port(servers::choose_port(answer, std::nullopt)), "a port is chosen");
  } catch (const Error&) {
    require(!answer.suggested_port, "a port that is free is taken");
  }
}

void check_facts(std::string_view text) {
  const auto answer = servers::read_answer<servers::FactsAnswer>(text);
  check_launch(answer);
  const ServerFacts& facts = answer.facts;
  for (const std::string* one :
       {&facts.host, &facts.os, &facts.cpu, &facts.user, &facts.torch, &facts.python_program}) {
    require(fit_for_a_line(*one), "texts move no cursor");
  }
  require(facts.load.empty() || facts.load.size() == 3, "three loads or none");
  for (const double load : facts.load) {
    require(std::isfinite(load) && load >= 0, "a load is a number");
  }
  for (const DiskFacts& disk : facts.disks) {
    require(fit_for_a_line(disk.path) && fit_for_a_line(disk.type), "texts move no cursor");
  }
  for (const auto& [name, package] : facts.packages) {
    require(name.find_first_of(" '\"$;\n") == std::string::npos, "a package's name is a plain word");
    require(package.version.find_first_of(" '\"$;\n") == std::string::npos, "a version is a plain word");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  guarded([&] { check_facts(text); });
  guarded([&] { servers::read_answer<servers::AuthorizeReport>(text); });
  return 0;
}
