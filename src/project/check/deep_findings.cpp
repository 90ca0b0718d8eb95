// Findings about the imports of torch.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/deep.hpp"

namespace remote::project {
namespace {

constexpr std::size_t most_names = 3;

Fix prepare_again(const std::string& server) {
  return {Fix::Where::here, "remote prepare --force --server " + server};
}

Finding import_finding(const ServerCheck& server, const ImportFacts& import) {
  if (!import.error.empty()) {
    // The findings from the facts report a missing torch. Here it is installed but cannot be imported.
    const bool there = !server.facts->torch.empty();
    return {"import", there ? CheckStatus::fail : CheckStatus::skip, "torch is not imported: " + import.error,
            there ? std::optional(prepare_again(server.server)) : std::nullopt};
  }
  const std::size_t gpus = server.facts->gpus.gpus.size();
  if (!import.trouble.empty()) {
    return {"import", CheckStatus::fail, "torch cannot use the GPUs: " + import.trouble,
            Fix{Fix::Where::server, "nvidia-smi"}};
  }
  if (gpus > 0 && import.devices == 0) {
    return {"import", CheckStatus::fail,
            fmt::format("torch {} sees none of the {} GPUs{}", import.torch, gpus,
                        import.cuda == "-" ? ": it was built without CUDA" : ""),
            Fix{Fix::Where::server, "python3 -c 'import torch; torch.cuda.init()'"}};
  }
  return {"import",
          CheckStatus::ok,
          fmt::format("torch {} in {:.1f} s, {} devices{}, {} libraries", import.torch, import.took.count(),
                      import.devices, import.nccl.empty() ? "" : ", NCCL " + import.nccl,
                      import.libraries.size()),
          {}};
}

// A library that is mapped from two places: it is random which one is used.
std::optional<Finding> twice(const ServerCheck& server, const ImportFacts& import) {
  std::map<std::string, std::vector<std::string>> places;
  for (const LibraryFacts& library : import.libraries) {
    places[library.name].push_back(library.path);
  }
  for (const auto& [name, paths] : places) {
    const bool counts = name.starts_with("lib") && paths.size() > 1;
    if (counts) {
      return Finding{"libraries", CheckStatus::warn,
                     fmt::format("{} is loaded {} times: {}", name, paths.size(), join(paths, ", ")),
                     prepare_again(server.server)};
    }
  }
  return std::nullopt;
}

using Digests = std::map<std::string, std::string>;  // by library name

Digests digests_of(const ImportFacts& import) {
  Digests all;
  for (const LibraryFacts& library : import.libraries) {
    all.emplace(library.name, library.digest);
  }
  return all;
}

// By library name: the digest that most servers have; in a tie, that of the first server.
Digests usual_of(const std::vector<Digests>& all) {
  std::map<std::string, std::vector<std::pair<std::string, int>>> counts;
  for (const Digests& one : all) {
    for (const auto& [name, digest] : one) {
      auto& of_name = counts[name];
      const auto known = std::ranges::find(of_name, digest, &std::pair<std::string, int>::first);
      if (known == of_name.end()) {
        of_name.emplace_back(digest, 1);
      } else {
        ++known->second;
      }
    }
  }
  Digests usual;
  for (const auto& [name, of_name] : counts) {
    usual[name] = std::ranges::max_element(of_name, {}, &std::pair<std::string, int>::second)->first;
  }
  return usual;
}

// Libraries whose file differs from that of most servers. A missing one is ignored: it belongs to another
// package or version, which the finding about packages reports.
Finding compared(const ServerCheck& server, const Digests& own, const Digests& usual) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : own) {
    if (usual.at(name) != digest) {
      names.push_back(name);
    }
  }
  if (names.empty()) {
    return {"same-libraries", CheckStatus::ok, "the same files as on the others", {}};
  }
  const bool nccl =
      std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("libnccl"); });
  return {"same-libraries", nccl ? CheckStatus::fail : CheckStatus::warn,
          fmt::format("{} {} loaded from another file than on most servers", join_first(names, most_names),
                      names.size() == 1 ? "is" : "are"),
          prepare_again(server.server)};
}

}  // namespace

std::vector<std::vector<Finding>> deep_findings(const CheckReport& report) {
  std::vector<std::vector<Finding>> findings(report.servers.size());
  std::vector<Digests> all;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < report.servers.size(); ++i) {
    const ServerCheck& server = report.servers[i];
    if (!server.facts || !server.facts->imported) {
      continue;
    }
    const ImportFacts& import = *server.facts->imported;
    findings[i].push_back(import_finding(server, import));
    if (auto found = twice(server, import)) {
      findings[i].push_back(std::move(*found));
    }
    if (import.error.empty()) {
      all.push_back(digests_of(import));
      places.push_back(i);
    }
  }
  if (places.size() > 1) {
    const Digests usual = usual_of(all);
    for (std::size_t i = 0; i < places.size(); ++i) {
      findings[places[i]].push_back(compared(report.servers[places[i]], all[i], usual));
    }
  }
  return findings;
}

}  // namespace remote::project
