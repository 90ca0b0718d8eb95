#include "config/trust.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
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

// Puts other lines in place of those in the file.
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
  const bool absolute = given != nullptr && *given == '/';  // the XDG specification: ignored otherwise
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
  // The digest is what counts; the project's digest tells what to forget, its path is for people.
  const std::string whose = " " + sha256_hex(project_) + " " + visible_line(project_);
  replace_lines(file_, [&](std::vector<std::string>& lines) {
    for (const Demand& demand : demands) {
      if (std::string line = digest(demand) + whose; std::ranges::find(lines, line) == lines.end()) {
        lines.push_back(std::move(line));
      }
    }
  });
}

void TrustStore::forget() {
  lines_.reset();
  const std::string whose = " " + sha256_hex(project_) + " ";
  replace_lines(file_, [&](std::vector<std::string>& lines) {
    std::erase_if(lines, [&](const std::string& line) { return line.find(whose) == 64; });
  });
}

std::vector<Demand> folder_demands(const Config& config) {
  std::vector<Demand> demands;
  const fs::path project = resolved(config.project);
  for (const std::string& folder :
       {std::string(".remote"), config.jobs_folder, std::string(Config::own_jobs_folder), config.logs_folder,
        std::string(".remote/sent"), std::string(".remote/reports"), std::string(".remote/samples")}) {
    const fs::path real = resolved(config.project / folder);
    if (!lies_in(real, project)) {
      demands.push_back({Demand::Kind::local_folder, "", folder, real, ""});
    }
  }
  return demands;
}

void check_own_folders(const Config& config) {
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

std::vector<Demand> demands_of(const Config& config) {
  using Kind = Demand::Kind;
  std::vector<Demand> demands;
  const fs::path project = resolved(config.project);
  for (const Server& server : config.servers) {
    const auto add = [&](Kind kind, const char* key, const std::string& value, const std::string& to) {
      const auto line = server.key_lines.find(key);
      const int at = line != server.key_lines.end() ? line->second : server.line;
      demands.push_back({kind, server.name, value, to, fmt::format("configs.yaml:{}", at)});
    };
    // Whom the password is for belongs to it: another address must not get what was allowed for this one.
    const std::string login =
        fmt::format("{}{}{}", server.username ? *server.username + "@" : "", server.hostname,
                    server.port ? ":" + std::to_string(*server.port) : "");
    if (server.password_command) {
      add(Kind::password_command, "password_command", *server.password_command, login);
    }
    if (server.password_env) {
      add(Kind::password_env, "password_env", *server.password_env, login);
    }
    if (server.known_hosts && !lies_in(resolved(*server.known_hosts), project)) {
      add(Kind::known_hosts, "known_hosts", resolved(*server.known_hosts), "");
    }
  }
  std::ranges::move(folder_demands(config), std::back_inserter(demands));
  return demands;
}

std::optional<Demand> folder_demand(const fs::path& project) {
  const fs::path folder = resolved(absolute_path(project));
  std::vector<std::string> reasons;
  for (const fs::path& one : {folder, folder / ".remote", folder / ".remote/configs.yaml"}) {
    if (const std::string why = others_hand(one); !why.empty()) {
      reasons.push_back(one.string() + ": " + why);
    }
  }
  return reasons.empty() ? std::nullopt
                         : std::optional(Demand{Demand::Kind::folder, "", join(reasons, "; "), "", ""});
}

void check_folder(const fs::path& project) {
  const auto demand = folder_demand(project);
  if (demand && !TrustStore(project).allows(*demand)) {
    throw Error::usage("others can change this project", demand->value,
                       "it could make this machine run anything; make it yours alone (chown, chmod go-w)")
        .mended_by(Remedy::trust_folder);
  }
}

}  // namespace remote::config
