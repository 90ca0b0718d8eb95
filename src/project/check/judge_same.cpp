// Settings that should be the same on all servers: names those that differ.

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

// "gpu3", "gpu1, gpu2 and gpu3", "the 7 others"
std::string listed(const std::vector<std::string>& names) {
  if (names.size() > 4) {
    return fmt::format("{} and {} others", names.front(), names.size() - 1);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : (i + 1 == names.size() ? " and " : ", ")) + names[i];
  }
  return text;
}

// The servers, grouped by their value. "" counts as a value: missing.
class Values {
 public:
  // `counts`: whether its value may become the usual one.
  void add(const std::string& server, const std::string& value, bool counts) {
    auto found = std::ranges::find(groups_, value, &Group::value);
    if (found == groups_.end()) {
      groups_.push_back({value, {}, 0});
      found = std::prev(groups_.end());
    }
    found->servers.push_back(server);
    found->counted += counts ? 1 : 0;
  }
  bool same() const { return groups_.size() <= 1; }
  bool unknown() const { return groups_.empty() || (same() && groups_.front().value.empty()); }
  // The most common value that is not ""; in a tie, that of the first server.
  const std::string& usual() const { return most().value; }
  // "1.26.4 on gpu3, 2.0.1 on the 7 others": this value comes first.
  std::string words(const std::string& value) const {
    const auto one = [](const Group& group, bool others) {
      const std::string what = group.value.empty() ? "missing" : group.value;
      return what + " on " +
             (others && group.servers.size() > 1 ? fmt::format("the {} others", group.servers.size())
                                                 : listed(group.servers));
    };
    std::string text;
    for (const Group& group : groups_) {
      if (group.value == value) {
        text = one(group, false);
      }
    }
    for (const Group& group : groups_) {
      if (group.value != value) {
        text += ", " + one(group, groups_.size() == 2);
      }
    }
    return text;
  }

 private:
  struct Group {
    std::string value;
    std::vector<std::string> servers;
    int counted = 0;
  };
  const Group& most() const {
    return *std::ranges::max_element(groups_, {}, [](const Group& group) {
      return std::tuple(!group.value.empty(), group.counted, group.servers.size());
    });
  }
  std::vector<Group> groups_;  // in the order of each group's first server
};

// If only some servers have torch, only their values count as usual.
bool counts(const Compared& one, const std::vector<Compared>& all) {
  return !one.facts.torch.empty() ||
         std::ranges::all_of(all, [](const Compared& each) { return each.facts.torch.empty(); });
}

// How to judge and fix a server whose value differs from the usual one.
struct Rule {
  const char* name;
  const char* thing;
  std::function<std::string(const Compared&)> value;
  std::function<CheckStatus(const std::string& own, const std::string& usual)> odd;
  std::function<std::optional<Fix>(const Compared&, const std::string& usual)> fix;
};

// The version cut after this many dots, and before a "+": "3.11.2" with one gives "3.11".
std::string beginning(const std::string& version, int points) {
  std::size_t end = 0;
  for (end = 0; end < version.size(); ++end) {
    if ((version[end] == '.' && points-- == 0) || version[end] == '+') {
      break;
    }
  }
  return version.substr(0, end);
}

// `options` are for update-packages.
Fix update_packages(const Compared& one, const std::string& options = "") {
  return {Fix::Where::here,
          fmt::format("remote {}{} --server {}", one.lacks_environment ? "prepare" : "update-packages",
                      one.lacks_environment ? "" : options, one.server)};
}

// `what`: the arguments of pip install.
Fix install(const Compared& one, const std::string& what) {
  if (!one.lacks_environment && one.facts.python_managed) {
    return {
        Fix::Where::advice,
        fmt::format("the distribution manages the packages of its Python (PEP 668): set python: {{manager: "
                    "venv, system_site_packages: true}} in configs.yaml, then: remote prepare --server {}",
                    one.server)};
  }
  if (one.lacks_environment || !one.pip_options) {
    return update_packages(one, " --force");
  }
  return {Fix::Where::here, fmt::format("remote run --server {} --cmd {}", one.server,
                                        shell_quote("python3 -m pip install " + *one.pip_options + what))};
}

Fix install(const Compared& one, const std::string& package, const std::string& version) {
  return install(one, shell_quote(package + "==" + version));
}

// Leaves out the number of GPUs if configs.yaml sets it for any of the servers, because the check `gpus` then
// compares it.
std::string gpus_of(const Compared& one, bool with_number) {
  if (one.facts.gpus.gpus.empty() || with_number) {
    return one.facts.gpus.gpus.empty() ? "" : gpu_words(one.facts.gpus.gpus);
  }
  const std::string words = gpu_words({one.facts.gpus.gpus.front()});
  return words.substr(std::string("1 × ").size());
}

// Debian's builds have version numbers that pip does not know.
bool is_of_distribution(const std::vector<Compared>& all, const std::string& package,
                        const std::string& version) {
  return std::ranges::any_of(all, [&](const Compared& one) {
    const auto found = one.facts.packages.find(package);
    return found != one.facts.packages.end() && found->second.distribution &&
           beginning(found->second.version, 9) == beginning(version, 9);
  });
}

// The project, Python and torch.
std::vector<Rule> rules_of_software(const std::vector<Compared>& all) {
  const auto warn = [](const std::string&, const std::string&) { return CheckStatus::warn; };
  return {
      {"same-project", "the project", [](const Compared& one) { return one.sent; }, warn,
       [](const Compared& one, const std::string&) -> std::optional<Fix> {
         return Fix{Fix::Where::here, "remote rsync --server " + one.server};
       }},
      {"same-python", "Python", [](const Compared& one) { return beginning(one.facts.python, 1); },
       // Pickles and bytecode are incompatible, and torch is a different build.
       [](const std::string& own, const std::string& usual) {
         return beginning(own, 0) != beginning(usual, 0) ? CheckStatus::fail : CheckStatus::warn;
       },
       [](const Compared& one, const std::string& usual) -> std::optional<Fix> {
         return Fix{
             Fix::Where::advice,
             fmt::format("set python: version: \"{}\" in configs.yaml, then: remote prepare --server {}",
                         usual, one.server)};
       }},
      {"same-torch", "torch", [](const Compared& one) { return one.facts.torch; },
       // Ranks with different major versions are incompatible; with different minor versions they may work.
       [](const std::string& own, const std::string& usual) {
         return own.empty() || beginning(own, 0) != beginning(usual, 0) ? CheckStatus::fail
                                                                        : CheckStatus::warn;
       },
       [&all](const Compared& one, const std::string& usual) -> std::optional<Fix> {
         if (!one.lacks_environment && is_of_distribution(all, "torch", usual)) {
           return Fix{Fix::Where::server_as_root, "apt-get install -y python3-torch"};
         }
         return install(one, "torch", beginning(usual, 9));
       }},
  };
}

// The software between torch and the GPUs, and between ranks.
std::vector<Rule> rules_of_gpus(const std::vector<Compared>& all) {
  const auto warn = [](const std::string&, const std::string&) { return CheckStatus::warn; };
  const bool with_number =
      std::ranges::none_of(all, [](const Compared& one) { return one.expected_gpus.has_value(); });
  return {
      {"same-cuda", "torch's CUDA",
       [](const Compared& one) {
         return one.facts.cuda + (one.facts.hip.empty() ? "" : "ROCm " + one.facts.hip);
       },
       warn,
       [](const Compared& one, const std::string&) -> std::optional<Fix> {
         return install(one, "--force-reinstall torch");
       }},
      {"same-nccl", "NCCL", [](const Compared& one) { return one.facts.nccl; },
       // NCCL refuses to connect to a different version.
       [](const std::string&, const std::string&) { return CheckStatus::fail; },
       [](const Compared& one, const std::string& usual) -> std::optional<Fix> {
         for (const auto& [name, package] : one.facts.packages) {
           if (name.starts_with("nvidia-nccl")) {
             return install(one, name, usual);
           }
         }
         return update_packages(one);
       }},
      {"same-gpus", "GPUs", [with_number](const Compared& one) { return gpus_of(one, with_number); }, warn,
       [](const Compared& one, const std::string&) -> std::optional<Fix> {
         return Fix{Fix::Where::advice, "say what server " + one.server +
                                            " has by gpus: in configs.yaml, or leave it out of the launch"};
       }},
      {"same-driver", "the NVIDIA driver", [](const Compared& one) { return one.facts.driver; }, warn,
       [](const Compared&, const std::string& usual) -> std::optional<Fix> {
         return Fix{Fix::Where::advice, "install driver " + usual + " there, as on the others"};
       }},
  };
}

void apply(const Rule& rule, const std::vector<Compared>& all, std::vector<std::vector<Finding>>& findings) {
  Values values;
  for (const Compared& one : all) {
    values.add(one.server, rule.value(one), counts(one, all));
  }
  if (values.unknown()) {
    return;
  }
  const std::string usual = values.usual();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string own = rule.value(all[i]);
    if (own == usual) {
      findings[i].push_back({rule.name,
                             CheckStatus::ok,
                             fmt::format("{} {}", rule.thing, own.empty() ? "is not there" : own),
                             {}});
    } else {
      findings[i].push_back({rule.name, rule.odd(own, usual),
                             fmt::format("{} {}", rule.thing, values.words(own)), rule.fix(all[i], usual)});
    }
  }
}

// ---- packages

struct Odd {
  std::string package;
  std::string own;
  std::string usual;
  std::string words;
};

std::string version_of(const ServerFacts& facts, const std::string& package) {
  const auto found = facts.packages.find(package);
  return found == facts.packages.end() ? "" : found->second.version;
}

// These packages have separate findings.
bool is_told_otherwise(const std::string& package) {
  return package == "torch" || package.starts_with("nvidia-nccl");
}

// Packages of the Linux distribution are installed along with other software, so only servers that have the
// package are compared.
Values values_of(const std::vector<Compared>& all, const std::string& package) {
  const bool distribution = std::ranges::all_of(all, [&](const Compared& one) {
    const auto found = one.facts.packages.find(package);
    return found == one.facts.packages.end() || found->second.distribution;
  });
  Values values;
  for (const Compared& one : all) {
    const std::string version = version_of(one.facts, package);
    if (!distribution || !version.empty()) {
      values.add(one.server, version, counts(one, all));
    }
  }
  return values;
}

Finding packages_finding(const Compared& one, const std::vector<Odd>& odd) {
  if (odd.empty()) {
    return {"same-packages",
            CheckStatus::ok,
            counted(one.facts.packages.size(), "package") + " as on the others",
            {}};
  }
  constexpr std::size_t shown = 5;
  std::vector<std::string> details;
  std::string wanted;
  for (const Odd& package : odd) {
    details.push_back(package.package + " " + package.words);
    wanted += " " + shell_quote(package.package + "==" + package.usual);
  }
  const std::string detail = join_first(details, shown, "; ");
  Fix fix = update_packages(one);
  if (odd.size() <= shown) {
    fix = install(one, wanted.substr(1));
  }
  return {"same-packages", CheckStatus::warn, detail, fix};
}

void judge_packages(const std::vector<Compared>& all, std::vector<std::vector<Finding>>& findings) {
  std::set<std::string> packages;
  for (const Compared& one : all) {
    for (const auto& [name, package] : one.facts.packages) {
      if (!is_told_otherwise(name)) {
        packages.insert(name);
      }
    }
  }
  std::map<std::string, std::vector<Odd>> odd;  // by server
  for (const std::string& package : packages) {
    const Values values = values_of(all, package);
    if (values.same()) {
      continue;
    }
    for (const Compared& one : all) {
      const std::string own = version_of(one.facts, package);
      if (own != values.usual() && !values.words(own).starts_with(", ")) {
        odd[one.server].push_back({package, own, values.usual(), values.words(own)});
      }
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].facts.python.empty()) {
      findings[i].push_back(packages_finding(all[i], odd[all[i].server]));
    }
  }
}

// ---- machines

// Names other servers that are the same machine, and other machines with the machine id of this one: software
// that tells machines apart by it, such as DHCP clients, confuses them.
void judge_machines(const std::vector<Compared>& all, std::vector<std::vector<Finding>>& findings) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ServerFacts& own = all[i].facts;
    std::vector<std::string> equal;
    std::vector<std::string> same;
    for (const Compared& other : all) {
      if (!own.image.empty() && other.facts.image == own.image && other.facts.machine != own.machine) {
        equal.push_back(other.server);
      } else if (&other != &all[i] &&
                 rules::share_gpus(own, all[i].gpu_indices, other.facts, other.gpu_indices)) {
        same.push_back(other.server);
      }
    }
    if (!equal.empty()) {
      findings[i].push_back({"machine-id", CheckStatus::warn,
                             fmt::format("{} {} the same /etc/machine-id, as if made from one image",
                                         listed(equal), equal.size() == 1 ? "has" : "have"),
                             Fix{Fix::Where::advice,
                                 "on one of them, as root: rm -f /etc/machine-id /var/lib/dbus/machine-id && "
                                 "systemd-machine-id-setup, and restart it"}});
    }
    if (!same.empty()) {
      findings[i].push_back(same_machine_finding(same));
    }
  }
}

}  // namespace

Finding same_machine_finding(const std::vector<std::string>& others) {
  return {"same-machine", CheckStatus::warn,
          fmt::format("{} {} the same machine: their ranks would share its GPUs", listed(others),
                      others.size() == 1 ? "is" : "are"),
          Fix{Fix::Where::advice,
              "keep one of the names in configs.yaml, or split the GPUs: gpus: [0, 1] and gpus: [2, 3]"}};
}

std::optional<std::string> pip_options(const config::Python& python) {
  std::string options = python.no_index ? "--no-index " : "";
  bool has_password = false;
  const auto add = [&](const char* option, const std::string& value) {
    has_password = has_password || mask_line(value) != value;
    options += fmt::format("{} {} ", option, shell_quote(value));
  };
  if (python.index_url) {
    add("--index-url", *python.index_url);
  }
  for (const std::string& url : python.extra_index_urls) {
    add("--extra-index-url", url);
  }
  for (const std::string& place : python.find_links) {
    add("--find-links", place);
  }
  for (const std::string& file : python.constraints) {
    add("--constraint", file);
  }
  return has_password ? std::nullopt : std::optional(std::move(options));
}

std::vector<std::vector<Finding>> judge_same(const std::vector<Compared>& all) {
  std::vector<std::vector<Finding>> findings(all.size());
  if (all.size() < 2) {
    return findings;
  }
  for (const auto& rules : {rules_of_software(all), rules_of_gpus(all)}) {
    for (const Rule& rule : rules) {
      apply(rule, all, findings);
    }
  }
  judge_packages(all, findings);
  judge_machines(all, findings);
  return findings;
}

}  // namespace remote::project
