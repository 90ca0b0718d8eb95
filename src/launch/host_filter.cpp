#include "launch/host_filter.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/ranges.hpp"
#include "base/strings.hpp"

namespace remote {
namespace {

constexpr int most_gpus = 1024;
constexpr const char* grammar = "write SERVER or SERVER:0,2, and @ between several";

// Parses "0,2".
std::vector<int> parse_gpus(std::string_view text, const std::string& where) {
  std::vector<int> gpus;
  if (text.empty()) {
    throw Error::usage(where, "no GPU follows the ':'", grammar);
  }
  for (const std::string& word : split(text, ',')) {
    const auto index = parse_number<int>(std::string(trim(word)));
    if (!index || *index < 0 || *index >= most_gpus) {
      throw Error::usage(where, fmt::format("'{}' is not the index of a GPU", visible_line(word, 60)),
                         grammar);
    }
    if (std::ranges::find(gpus, *index) == gpus.end()) {
      gpus.push_back(*index);
    }
  }
  std::ranges::sort(gpus);
  return gpus;
}

// Parses "b", "b:0,2", "[::1]" or "[::1]:0,2".
LaunchHost parse_host(std::string_view word, const std::string& where) {
  LaunchHost host;
  host.where = where;
  const bool bracketed = word.starts_with('[');
  const std::size_t colon = bracketed ? word.find("]:") : word.find(':');
  std::string_view name = word.substr(0, colon);
  if (colon != std::string_view::npos) {
    host.gpus = parse_gpus(word.substr(colon + (bracketed ? 2 : 1)), where);
  }
  if (bracketed) {
    name.remove_prefix(1);
    name = name.substr(0, name.find(']'));
  }
  name = trim(name);
  if (name.empty()) {
    throw Error::usage(where, "a server has no name", grammar);
  }
  host.name = std::string(name);
  return host;
}

bool has(const std::vector<int>& list, int index) {
  return std::ranges::find(list, index) != list.end();
}

// The GPUs of a host that all entries in `named` list together; `whole`: one of them lists no GPU.
struct Named {
  bool any = false;
  bool whole = false;
  std::vector<int> gpus;
  std::string where;
};

Named named_of(const LaunchHost& host, const std::vector<LaunchHost>& named) {
  Named found;
  for (const LaunchHost& one : named) {
    if (one.name != host.name) {
      continue;
    }
    found.any = true;
    found.where = one.where;
    found.whole = found.whole || one.gpus.empty();
    for (const int index : one.gpus) {
      if (host.slots && index >= *host.slots) {
        throw Error::usage(one.where, fmt::format("there is no GPU {} on {}", index, host.name),
                           fmt::format("{} says that it has {}", host.where,
                                       counted(static_cast<std::size_t>(*host.slots), "slot")));
      }
      if (!has(found.gpus, index)) {
        found.gpus.push_back(index);
      }
    }
  }
  std::ranges::sort(found.gpus);
  return found;
}

void check_names(const std::vector<LaunchHost>& hosts, const std::vector<LaunchHost>& named) {
  for (const LaunchHost& one : named) {
    if (std::ranges::find(hosts, one.name, &LaunchHost::name) == hosts.end()) {
      std::vector<std::string> known;
      std::ranges::transform(hosts, std::back_inserter(known), &LaunchHost::name);
      throw Error::usage(one.where,
                         fmt::format("'{}' is not a server of this launch", visible_line(one.name, 60)),
                         "there are " + join(known, ", "));
    }
  }
}

}  // namespace

std::vector<LaunchHost> parse_host_filter(std::string_view text, const std::string& option) {
  std::vector<LaunchHost> hosts;
  const std::string where = fmt::format("{} {}", option, visible_line(text, 200));
  if (trim(text).empty()) {
    throw Error::usage(where, "it names no server", grammar);
  }
  for (const std::string& word : split(text, '@')) {
    hosts.push_back(parse_host(trim(word), where));
  }
  return hosts;
}

std::vector<LaunchHost> include_hosts(const std::vector<LaunchHost>& hosts,
                                      const std::vector<LaunchHost>& named) {
  check_names(hosts, named);
  std::vector<LaunchHost> chosen;
  for (const LaunchHost& host : hosts) {
    const Named found = named_of(host, named);
    if (!found.any) {
      continue;
    }
    LaunchHost& one = chosen.emplace_back(host);
    if (!found.whole) {
      one.where = found.where;
      one.gpus = found.gpus;
      one.slots = static_cast<int>(found.gpus.size());
    }
  }
  return chosen;
}

std::vector<LaunchHost> exclude_hosts(const std::vector<LaunchHost>& hosts,
                                      const std::vector<LaunchHost>& named) {
  check_names(hosts, named);
  std::vector<LaunchHost> left;
  for (const LaunchHost& host : hosts) {
    const Named found = named_of(host, named);
    if (found.whole) {
      continue;
    }
    LaunchHost one = host;
    if (found.any) {
      one.where = found.where;
      one.gpus = found.gpus;
      one.without_gpus = true;
    }
    if (found.any && host.slots) {
      one.slots = *host.slots - static_cast<int>(found.gpus.size());
      if (*one.slots == 0) {
        continue;
      }
    }
    left.push_back(std::move(one));
  }
  if (left.empty()) {
    throw Error::usage(named.front().where, "no server is left", "exclude fewer of them, or include more");
  }
  return left;
}

namespace {

// Explains why a server's ranks do not see a GPU.
std::string explain_missing(const UsableGpus& gpus) {
  if (gpus.hidden_by != HiddenBy::nobody) {
    return fmt::format("{}, set by the {}, leaves {}", gpus.variable,
                       gpus.hidden_by == HiddenBy::login ? "login" : "prologue",
                       gpus.indices.empty() ? "none" : "GPU " + ranges(gpus.indices));
  }
  if (gpus.indices.empty()) {
    return "no GPU was found there";
  }
  return fmt::format("it has {}: {}", counted(gpus.indices.size(), "GPU"), ranges(gpus.indices));
}

}  // namespace

std::vector<int> launch::gpus_of(const LaunchHost& host, const UsableGpus& gpus,
                                 const std::vector<int>& allowed) {
  if (host.gpus.empty()) {
    return {};
  }
  for (const int index : host.gpus) {
    if (!has(gpus.indices, index)) {
      throw Error::usage(host.where, fmt::format("there is no GPU {} on {}", index, host.name),
                         explain_missing(gpus));
    }
    if (!host.without_gpus && !allowed.empty() && !has(allowed, index)) {
      throw Error::usage(host.where, fmt::format("GPU {} of {} is not for jobs", index, host.name),
                         fmt::format("`gpus` in configs.yaml names {}", ranges(allowed)));
    }
  }
  if (!host.without_gpus) {
    return host.gpus;
  }
  std::vector<int> left = allowed;
  if (left.empty()) {
    left = gpus.indices;
    std::ranges::sort(left);
  }
  std::erase_if(left, [&](int index) { return has(host.gpus, index); });
  if (host.slots && left.size() > static_cast<std::size_t>(*host.slots)) {
    left.resize(static_cast<std::size_t>(*host.slots));
  }
  if (left.empty()) {
    throw Error::usage(host.where, fmt::format("no GPU of {} is left", host.name),
                       "exclude the whole server");
  }
  return left;
}

void launch::set_gpus(const LaunchHost& host, const UsableGpus& gpus, const std::vector<int>& allowed,
                      const Env& user, Env& env) {
  const std::vector<int> chosen = gpus_of(host, gpus, allowed);
  if (chosen.empty()) {
    return;
  }
  if (std::ranges::find(user, "CUDA_VISIBLE_DEVICES", &Env::value_type::first) != user.end()) {
    throw Error::usage(host.where, "it names GPUs, and so does the variable CUDA_VISIBLE_DEVICES",
                       "keep one of the two");
  }
  env.emplace_back("CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(chosen, ",")));
}

}  // namespace remote
