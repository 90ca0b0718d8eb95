#include "servers/links.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/trust.hpp"
#include "servers/project_tree.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
using config::lies_in;
using Why = LinkLeftOut::Why;
namespace {

// Where programs keep keys and passwords: names with this meaning in any folder, and paths in the home
// directory.
constexpr std::array<std::string_view, 15> secret_names{
    ".ssh",   ".gnupg",  ".aws",         ".kube",           ".docker",
    ".azure", ".netrc",  ".pgpass",      ".pypirc",         ".git-credentials",
    ".npmrc", ".kaggle", ".vault-token", ".password-store", ".mozilla"};
constexpr std::array<std::string_view, 6> secret_places{".config/gcloud",      ".config/gh",
                                                        ".config/rclone",      ".local/share/keyrings",
                                                        ".local/state/remote", ".cache/huggingface/token"};

// `home` is the canonical path of the user's home directory.
bool holds_secrets(const fs::path& target, const fs::path& home) {
  if (std::ranges::any_of(target, [](const fs::path& part) {
        return std::ranges::find(secret_names, part.string()) != secret_names.end();
      })) {
    return true;
  }
  const auto touches = [&](std::string_view name) {
    const fs::path place = home / name;
    return lies_in(target, place) || (lies_in(place, target) && is_there(place));
  };
  return std::ranges::any_of(secret_names, touches) || std::ranges::any_of(secret_places, touches);
}

// Whether it is an environment of venv, virtualenv, uv or conda, whose programs contain paths of this
// machine.
bool is_environment(const fs::path& folder) {
  return is_there(folder / "pyvenv.cfg") || is_there(folder / "conda-meta/history");
}

bool leads_nowhere(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
         error == std::errc::too_many_symbolic_link_levels;
}

class Walk {
 public:
  Walk(const config::Config& config, const fs::path& project,
       const std::function<bool(const OutsideLink&)>& allowed, const Cancel& cancel)
      : config_(config), project_(project), allowed_(allowed), cancel_(cancel) {
    std::error_code ignored;
    home_ = fs::weakly_canonical(home_folder(), ignored);
  }

  // Whether any link points outside the project, to a folder or to a missing file, or there is a Python
  // environment. Reads only directory entries and link targets.
  bool any() const {
    std::error_code error;
    for (fs::recursive_directory_iterator at(project_, error), end; !error && at != end;
         at.increment(error)) {
      cancel_.check();
      if (at.depth() == 0 && at->path().filename() == ".remote") {
        at.disable_recursion_pending();
      } else if (at->is_symlink(error)) {
        const fs::path target = fs::canonical(at->path(), error);
        if (leads_nowhere(error) || (!error && (!is_inside(target) || fs::is_directory(target, error)))) {
          return true;
        }
      } else if (at->is_directory(error) && is_environment(at->path())) {
        return true;
      }
      error.clear();  // rsync sends nothing from an unreadable folder or a broken link
    }
    return false;
  }

  void visit(const fs::path& folder, const std::string& prefix, const fs::path& outside) {
    cancel_.check();
    if (!excluded_.empty() && prefix.starts_with(excluded_)) {
      return;
    }
    above_.push_back(folder);
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = prefix + at->path().filename().string();
      std::error_code bad;
      if (name != ".remote" && at->is_symlink(bad)) {
        const fs::path target = fs::canonical(at->path(), bad);
        if (!bad) {
          follow(name, target, outside);
        } else if (leads_nowhere(bad)) {  // because of it, rsync would not remove anything
          found.push_back({name, fs::read_symlink(at->path(), bad), Why::nowhere});
        }
      } else if (name != ".remote" && !outside.empty() && holds_secrets(at->path(), home_)) {
        found.push_back({name, at->path(), Why::secret});
      } else if (name != ".remote" && at->is_directory(bad) && is_environment(at->path())) {
        found.push_back({name, at->path(), Why::environment});
      } else if (name != ".remote" && at->is_directory(bad)) {
        visit(at->path(), name + "/", outside);
      }
    }
    above_.pop_back();
  }

  std::vector<OutsideLink> found;

 private:
  bool is_inside(const fs::path& target) const {
    return lies_in(target, project_) && !lies_in(target, project_ / ".remote");
  }

  void follow(const std::string& name, const fs::path& target, const fs::path& outside) {
    const bool folder = is_folder(target);
    const bool inside = is_inside(target);
    const bool secret = !inside && (lies_in(target, project_) || holds_secrets(target, home_));
    if (secret) {
      found.push_back({name, target, Why::secret});
    } else if (folder &&
               std::ranges::any_of(above_, [&](const fs::path& one) { return lies_in(one, target); })) {
      found.push_back({name, target, Why::circle});  // its content would include it again and again
    } else if (folder && is_environment(target)) {
      found.push_back({name, target, Why::environment});
    } else if (inside || (!outside.empty() && lies_in(target, outside))) {
      if (folder) {
        enter(target, name, inside ? fs::path() : outside);
      }
    } else {
      found.push_back({name, target, Why::not_allowed});
      if (folder && allowed_(found.back())) {
        enter(target, name, target);
      }
    }
  }

  // Links to folders with links can produce more paths than any walk can finish.
  void enter(const fs::path& target, const std::string& name, const fs::path& outside) {
    if (++entered_ % most_entered == 0) {
      std::set<std::string> above;
      for (std::size_t slash = name.find('/'); slash != std::string::npos;
           slash = name.find('/', slash + 1)) {
        above.insert(name.substr(0, slash + 1));
      }
      const std::set<std::string> excluded = select_among(config_, above, cancel_).excluded;
      if (excluded.empty()) {
        throw Error::usage("cannot send the project",
                           fmt::format("its symbolic links lead to more than {} folders, one of them {}",
                                       most_entered, visible_line(name)),
                           "remove the links to folders that have links to folders, or name them in "
                           ".remote/exclude.txt");
      }
      excluded_ = *excluded.begin();  // the topmost one
    }
    visit(target, name + "/", outside);
  }

  static constexpr std::size_t most_entered = 10'000;

  const config::Config& config_;
  const fs::path& project_;
  const std::function<bool(const OutsideLink&)>& allowed_;
  const Cancel& cancel_;
  fs::path home_;
  std::vector<fs::path> above_;
  std::size_t entered_ = 0;  // the number of links to folders
  std::string excluded_;     // a folder with more links than are followed
};

}  // namespace

std::vector<OutsideLink> outside_links(const config::Config& config,
                                       const std::function<bool(const OutsideLink&)>& allowed,
                                       const Cancel& cancel) {
  std::error_code error;
  const fs::path project = fs::canonical(config.project, error);
  if (error) {
    throw Error("cannot read " + config.project.string(), error.message(),
                "do you have permission to read all folders of the project?");
  }
  Walk walk(config, project, allowed, cancel);
  if (!walk.any()) {
    return {};
  }
  walk.visit(project, "", {});
  std::set<std::string> names;
  for (const OutsideLink& link : walk.found) {
    names.insert(link.name + (is_folder(link.target) ? "/" : ""));
  }
  const std::set<std::string> excluded = select_among(config, names, cancel).excluded;
  std::erase_if(walk.found, [&](const OutsideLink& link) {
    return excluded.contains(link.name) || excluded.contains(link.name + "/");
  });
  std::ranges::sort(walk.found, {}, &OutsideLink::name);
  return std::move(walk.found);
}

}  // namespace remote::servers
