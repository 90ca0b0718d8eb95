#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "promise.hpp"
#include "servers/facts.hpp"

// What a server says of itself is any bytes.

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

void check_facts(std::string_view text) {
  const ServerFacts facts = servers::read_answer<servers::FactsAnswer>(text).facts;
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
  return 0;
}
