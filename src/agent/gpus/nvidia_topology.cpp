// `nvidia-smi topo -m`, and the driver's errors in the kernel's log. Formats: the manual nvidia-smi(1), and
// NVIDIA's document "XID Errors".

#include <algorithm>

#include "agent/gpus/vendors.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

[[noreturn]] void refuse_topology(std::string_view line) {
  throw BadAnswer(text::format("its topology has '{}'", line.substr(0, 80)));
}

// The heading is underlined by escape sequences.
std::string remove_styles(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      i = std::min(line.find('m', i), line.size() - 1);
    } else {
      plain += line[i];
    }
  }
  return plain;
}

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> found = split(remove_styles(line), '\t');
  for (std::string& cell : found) {
    cell = trim(cell);
  }
  return found;
}

constexpr int most_xid = 100'000;

}  // namespace

std::optional<GpuTopology> read_topology(const std::vector<std::string>& lines) {
  GpuTopology topology;
  for (const std::string& line : lines) {
    const std::vector<std::string> found = split_tabs(line);
    if (topology.devices.empty()) {
      if (found.size() < 2 || !found[0].empty()) {
        continue;
      }
      for (std::size_t i = 1; i < found.size() && is_word(found[i], "_.-"); ++i) {  // not "CPU Affinity"
        topology.devices.push_back(found[i]);
      }
      continue;
    }
    const std::size_t row = topology.links.size();
    if (row < topology.devices.size() && !found.empty() && found[0] == topology.devices[row]) {
      if (found.size() <= topology.devices.size()) {
        refuse_topology(line);
      }
      std::vector<std::string> words(
          found.begin() + 1, found.begin() + 1 + static_cast<std::ptrdiff_t>(topology.devices.size()));
      for (const std::string& word : words) {
        if (!is_word(word, "/") || word.size() > 8) {
          refuse_topology(line);
        }
      }
      topology.links.push_back(std::move(words));
    } else if (const auto name = trim(line);
               name.starts_with("NIC") && name.find(": ") != std::string::npos) {
      // The legend: "  NIC0: mlx5_0".
      const std::size_t colon = name.find(": ");
      const std::string_view real = trim(name.substr(colon + 1));
      const auto device = std::ranges::find(topology.devices, name.substr(0, colon));
      if (device != topology.devices.end() && is_word(real, "_.-")) {
        *device = real;
      }
    }
  }
  if (topology.devices.empty() || topology.links.size() != topology.devices.size() ||
      topology.devices.size() > most_gpus) {
    return std::nullopt;
  }
  return topology;
}

std::vector<XidError> read_xids(const std::vector<std::string>& lines) {
  std::vector<XidError> errors;
  for (const std::string& line : lines) {
    constexpr std::string_view mark = "NVRM: Xid (";
    const std::size_t at = line.find(mark);
    if (at == std::string::npos) {
      continue;
    }
    std::string_view rest = std::string_view(line).substr(at + mark.size());
    if (rest.starts_with("PCI:")) {
      rest.remove_prefix(4);
    }
    const std::size_t end = rest.find("): ");
    if (end == std::string_view::npos || !is_word(rest.substr(0, end), ":.")) {
      continue;
    }
    XidError error;
    error.pci_address = rest.substr(0, end);
    rest.remove_prefix(end + 3);
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<int> code = parse_number<int>(trim(rest.substr(0, comma)));
    if (!code || *code < 0 || *code > most_xid) {
      continue;
    }
    error.code = *code;
    error.text = trim(rest.substr(std::min(comma + 1, rest.size())));
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace remote::agent
