#include "servers/project_tree.hpp"

#include <array>
#include <fstream>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/sync.hpp"

namespace remote::servers {
namespace {

constexpr std::string_view mark = "@name ";

// Names that rsync writes otherwise (control characters as \#012) or that sha256sum does.
bool is_plain(std::string_view name) {
  return name.find('\\') == std::string_view::npos && !name.empty() && name != "./";
}

}  // namespace

std::vector<std::string> selected_names(const config::Config& config, const std::filesystem::path& folder,
                                        const Cancel& cancel) {
  // rsync itself says what it would send to an empty folder.
  const TempFolder empty;
  SubprocessSpec spec;
  spec.argv = {"rsync", "-rn", "-8", "--out-format=" + std::string(mark) + "%n"};
  for (std::string& argument : selection_arguments(config)) {
    spec.argv.push_back(std::move(argument));
  }
  spec.argv.insert(spec.argv.end(), {"--", (folder / "").string(), (empty.path() / "").string()});
  spec.set_env = {{"LC_ALL", "C"}};
  const ExecResult result = run_subprocess(spec, {}, cancel);
  const auto code = result.status.code();
  if (!result.status.success() && code != 23 && code != 24) {  // links to nowhere, files that vanished
    throw Error("cannot list the project", last_lines(trim(result.err), 2));
  }
  std::vector<std::string> names;
  for (const std::string& line : split(result.out, '\n')) {
    if (line.starts_with(mark)) {
      names.push_back(line.substr(mark.size()));
    }
  }
  return names;
}

const std::vector<std::string>& ProjectTree::names(const Cancel& cancel) {
  const std::lock_guard lock(names_mutex_);
  if (!names_) {
    std::vector<std::string> names = selected_names(config_, config_.project, cancel);
    std::erase_if(names, [](const std::string& name) { return !is_plain(name); });
    names_ = std::move(names);
  }
  return *names_;
}

std::optional<std::string> ProjectTree::digest(const std::string& name, const Cancel& cancel) {
  // One at a time: side by side they would only wait for the same disk.
  const std::lock_guard lock(digests_mutex_);
  if (const auto found = digests_.find(name); found != digests_.end()) {
    return found->second;
  }
  std::ifstream file(config_.project / name, std::ios::binary);
  Sha256 digest;
  std::array<char, 65536> buffer{};
  while (file) {
    file.read(buffer.data(), buffer.size());
    digest.add({buffer.data(), static_cast<std::size_t>(file.gcount())});
    cancel.check();
  }
  if (!file.eof()) {
    return std::nullopt;
  }
  return digests_.emplace(name, digest.hex()).first->second;
}

}  // namespace remote::servers
