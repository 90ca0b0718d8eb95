#include "config/trust.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/kept_modes.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> lines_of(const fs::path& file) {
  const auto text = read_file_if_there(file);
  if (!text) {
    return {};
  }
  if (const std::string why = others_hand(file); !why.empty()) {
    throw Error("cannot use " + file.string(), why, "it says what you have allowed; make it yours alone");
  }
  return split(*text, '\n');
}

// Changes the lines of the file atomically, under a lock.
void replace_lines(const fs::path& file, const std::function<void(std::vector<std::string>&)>& change) {
  make_folders(file.parent_path(), 0700);
  const FileLock lock(file.string() + ".lock");
  std::vector<std::string> lines = lines_of(file);
  std::erase(lines, "");
  change(lines);
  write_file_atomic(file, lines.empty() ? "" : join(lines, "\n") + "\n", 0600);
}

}  // namespace

fs::path state_folder() {
  const char* given = std::getenv("XDG_STATE_HOME");
  const bool absolute = given != nullptr && *given == '/';  // XDG specification: ignore relative paths
  return (absolute ? fs::path(given) : home_folder() / ".local/state") / "remote";
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

TrustStore::TrustStore(const fs::path& project)
    : project_(resolved(absolute_path(project))), file_(state_folder() / "trusted") {}

std::string TrustStore::digest(const Demand& demand) const {
  return Sha256()
      .add_field("remote trust 1")
      .add_field(project_)
      .add_field(std::to_string(static_cast<int>(demand.kind)))
      .add_field(demand.server)
      .add_field(demand.value)
      .add_field(demand.to)
      .hex();
}

bool TrustStore::allows(const Demand& demand) const {
  return not_allowed({demand}).empty();
}

std::vector<Demand> TrustStore::not_allowed(std::vector<Demand> demands) const {
  if (demands.empty()) {
    return demands;
  }
  if (!lines_) {
    lines_ = lines_of(file_);
  }
  std::erase_if(demands, [&](const Demand& demand) {
    const std::string wanted = digest(demand) + " ";
    return std::ranges::any_of(*lines_, [&](const std::string& line) { return line.starts_with(wanted); });
  });
  return demands;
}

void TrustStore::allow(const std::vector<Demand>& demands) {
  lines_.reset();
  // The demand's digest is what counts. The digest of the project's path shows which lines to forget; the
  // path itself is for the user.
  const std::string whose = " " + sha256_hex(project_) + " " + visible_line(project_);
  replace_lines(file_, [&](std::vector<std::string>& lines) {
    for (const Demand& demand : demands) {
      if (std::string line = digest(demand) + whose; std::ranges::find(lines, line) == lines.end()) {
        lines.push_back(std::move(line));
      }
    }
  });
}

void TrustStore::allow_also(const std::vector<Demand>& before, const std::vector<Demand>& after) {
  std::vector<Demand> more;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (allows(before[i]) && !allows(after[i])) {
      more.push_back(after[i]);
    }
  }
  if (!more.empty()) {
    allow(more);
  }
}

void TrustStore::replace(const std::vector<Demand>& before, const std::vector<Demand>& after) {
  std::vector<std::string> old;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (digest(before[i]) != digest(after[i]) && allows(before[i])) {
      old.push_back(digest(before[i]) + " ");
    }
  }
  if (old.empty()) {
    return;
  }
  lines_.reset();
  replace_lines(file_, [&](std::vector<std::string>& lines) {
    std::erase_if(lines, [&](const std::string& line) {
      return std::ranges::any_of(old, [&](const std::string& one) { return line.starts_with(one); });
    });
  });
}

void TrustStore::forget() {
  lines_.reset();
  const std::string whose = " " + sha256_hex(project_) + " ";
  replace_lines(file_, [&](std::vector<std::string>& lines) {
    std::erase_if(lines, [&](const std::string& line) { return line.find(whose) == 64; });
  });
}

namespace {

// Folders on this machine that remote writes to, by name in the project.
std::vector<std::string> written_folders(const Config& config) {
  return {".remote",      config.jobs_folder, Config::own_jobs_folder, config.logs_folder,
          ".remote/sent", ".remote/reports",  ".remote/samples"};
}

}  // namespace

std::vector<Demand> folder_demands(const Config& config) {
  std::vector<Demand> demands;
  const fs::path project = resolved(config.project);
  for (const std::string& folder : written_folders(config)) {
    const fs::path real = resolved(config.project / folder);
    if (!lies_in(real, project)) {
      demands.push_back({Demand::Kind::local_folder, "", folder, real, ""});
    }
  }
  return demands;
}

void check_own_folders(const Config& config) {
  const fs::path project = resolved(config.project);
  for (const std::string& folder : written_folders(config)) {
    const fs::path real = resolved(config.project / folder).lexically_relative(project);
    if (std::ranges::any_of(real, [](const fs::path& part) { return lower_case(part.string()) == ".git"; })) {
      throw Error::usage("cannot use " + (config.project / folder).string(),
                         "it is a link to " + real.string() + ", which is git's own", "remove the link");
    }
  }
  std::vector<std::string> folders = {".remote/sent/.pulls"};
  for (const std::string& jobs : {config.jobs_folder, std::string(Config::own_jobs_folder)}) {
    for (const char* kept : {"/starts", "/launches", "/launches/open"}) {
      folders.push_back(jobs + kept);
    }
  }
  for (const std::string& folder : folders) {
    if (is_link(config.project / folder)) {
      throw Error::usage("cannot use " + (config.project / folder).string(),
                         "it is a link, and remote removes files there that it does not know",
                         "remove the link");
    }
  }
}

namespace {

using ReadFile = std::function<std::optional<std::string>(const fs::path&)>;

// Everything chosen by the project that decides which machine receives a password for this server. `read`
// reads a file of host keys.
std::string receiver_of(const Config& config, const Server& server, const ReadFile& read) {
  std::string to = (server.username ? *server.username + "@" : "") +
                   (server.port ? host_and_port(server.hostname, *server.port) : server.hostname);
  if (server.proxy_jump) {
    to += " through " + *server.proxy_jump;
  }
  if (server.known_hosts) {
    const fs::path file = resolved(*server.known_hosts);
    const fs::path project = resolved(config.project);
    const bool inside = lies_in(file, project);
    to += ", which has a host key of " + (inside ? file.lexically_relative(project) : file).string();
    if (inside) {  // the project can change it
      const auto text = read(file);
      to += text && !text->empty() ? " (SHA-256 " + sha256_hex(*text).substr(0, 32) + ")" : " (empty)";
    }
  }
  if (config.host_keys == HostKeys::strict) {
    to += ", if its host key is known";
  }
  const ConnectBy how = server.connect_by.value_or(config.connect_by);
  if (how != ConnectBy::automatic) {
    to += " (connection: " + to_string(how) + ")";
  }
  return to;
}

std::vector<Demand> server_demands(const Config& config, const ReadFile& read) {
  using Kind = Demand::Kind;
  std::vector<Demand> demands;
  const fs::path project = resolved(config.project);
  for (const Server& server : config.servers) {
    const auto add = [&](Kind kind, const char* key, const std::string& value, const std::string& to) {
      const auto line = server.key_lines.find(key);
      const int at = line != server.key_lines.end() ? line->second : server.line;
      demands.push_back({kind, server.name, value, to, fmt::format("configs.yaml:{}", at)});
    };
    if (server.password_command) {
      add(Kind::password_command, "password_command", *server.password_command,
          receiver_of(config, server, read));
    }
    if (server.password_env) {
      add(Kind::password_env, "password_env", *server.password_env, receiver_of(config, server, read));
    }
    if (server.known_hosts && !lies_in(resolved(*server.known_hosts), project)) {
      add(Kind::known_hosts, "known_hosts", resolved(*server.known_hosts), "");
    }
  }
  return demands;
}

}  // namespace

std::vector<Demand> demands_of(const Config& config) {
  std::vector<Demand> demands = server_demands(config, read_file_if_there);
  std::ranges::move(folder_demands(config), std::back_inserter(demands));
  return demands;
}

void add_host_key(const Config& config, const fs::path& file, const std::string& before,
                  const std::string& after, const std::function<void()>& write) {
  const auto demands_with = [&](const std::string& text) {
    return server_demands(config, [&](const fs::path& other) {
      return other == resolved(file) ? std::optional(text) : read_file_if_there(other);
    });
  };
  const std::vector<Demand> old = demands_with(before);
  if (old.empty()) {
    write();
    return;
  }
  // Allows the new content before writing it, so that no other command ever sees content that is not allowed.
  TrustStore store(config.project);
  const std::vector<Demand> fresh = demands_with(after);
  store.allow_also(old, fresh);
  write();
  store.replace(old, fresh);
}

std::optional<Demand> folder_demand(const fs::path& project) {
  const fs::path folder = resolved(absolute_path(project));
  std::vector<std::string> reasons;
  for (const fs::path& one : {folder, folder / ".remote", folder / ".remote/configs.yaml"}) {
    if (const std::string why = others_hand(one); !why.empty()) {
      reasons.push_back(one.string() + ": " + why);
    }
  }
  const fs::path settings = resolved(folder / ".remote/configs.yaml");
  if (!lies_in(settings, folder) && !lies_in(settings, resolved(folder / ".remote"))) {
    reasons.push_back((folder / ".remote/configs.yaml").string() + ": it is a link to " + settings.string());
  }
  return reasons.empty() ? std::nullopt
                         : std::optional(Demand{Demand::Kind::folder, "", join(reasons, "; "), "", ""});
}

void check_folder(const fs::path& project) {
  const auto demand = folder_demand(project);
  if (demand && !TrustStore(project).allows(*demand)) {
    throw Error::usage("others can change this project", demand->value,
                       "it could make this machine run anything; " +
                           advise_mode(keeps_modes(project), "make it yours alone (chown, chmod go-w)",
                                       "move the project to another one"))
        .mended_by(Remedy::trust_folder);
  }
}

}  // namespace remote::config
