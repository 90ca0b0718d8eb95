#include "servers/package_files.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/beneath.hpp"
#include "base/build_products.hpp"
#include "base/command.hpp"
#include "base/hashing.hpp"
#include "base/ownership.hpp"
#include "base/package_name.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/trust.hpp"
#include "servers/project_tree.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

using PlaceKind = RequirementPlace::Kind;

// Joins lines that end with a backslash, and removes comments.
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const std::string& raw : split(text, '\n')) {
    std::string line = raw.ends_with('\r') ? raw.substr(0, raw.size() - 1) : raw;
    const bool continues = line.ends_with('\\') && !trim(line).starts_with('#');
    if (continues) {
      line.pop_back();
    }
    lines.back() += line;
    if (!continues) {
      lines.emplace_back();
    }
  }
  for (std::string& line : lines) {
    for (std::size_t at = line.find('#'); at != std::string::npos; at = line.find('#', at + 1)) {
      if (at == 0 || std::isspace(static_cast<unsigned char>(line[at - 1])) != 0) {
        line.resize(at);
        break;
      }
    }
    line = trim(line);
  }
  return lines;
}

bool is_archive(const std::string& name) {
  return name.ends_with(".whl") || name.ends_with(".tar.gz") || name.ends_with(".zip");
}

// The path in "./libs/p[extra] ; marker", "p @ file:///libs/p" or "libs/p#egg=p"; "" if there is none.
std::string local_path(std::string text) {
  text = trim(text.substr(0, std::min(text.find(" ;"), text.find(';'))));
  if (const std::size_t at = text.find('@');
      at != std::string::npos && at > 0 && text.find_first_of("/\\") > at && text.find("://") != at) {
    text = trim(std::string_view(text).substr(at + 1));
  }
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  text = text.substr(0, text.find('#'));
  constexpr std::string_view with_host = "file://";
  if (text.starts_with(with_host)) {
    const std::size_t path = text.find('/', with_host.size());
    const std::string host = text.substr(with_host.size(), path - with_host.size());
    text = path != std::string::npos && (host.empty() || host == "localhost") ? text.substr(path) : "";
  } else if (text.starts_with("file:")) {
    text = text.substr(5);
  }
  if (text.ends_with(']')) {
    text = text.substr(0, text.rfind('['));
  }
  text = trim(text);
  return text.find("://") == std::string::npos && !text.starts_with("//") &&
                 text.find("${") == std::string::npos
             ? text
             : "";
}

void add_place(std::vector<RequirementPlace>& places, PlaceKind kind, const std::string& text) {
  if (const std::string path = local_path(text); !path.empty()) {
    places.push_back({kind, path});
  }
}

void read_options(const std::string& line, std::vector<RequirementPlace>& places) {
  struct Option {
    std::string_view brief;
    std::string_view full;
    PlaceKind kind;
  };
  constexpr Option options[] = {{"-r", "--requirement", PlaceKind::requirements},
                                {"-c", "--constraint", PlaceKind::requirements},
                                {"-f", "--find-links", PlaceKind::links},
                                {"-e", "--editable", PlaceKind::editable}};
  const std::vector<std::string> words = shell_words(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const Option& option : options) {
      const std::string& word = words[i];
      if (word == option.brief || word == option.full) {
        add_place(places, option.kind, i + 1 < words.size() ? words[++i] : "");
      } else if (word.starts_with(std::string(option.full) + '=')) {
        add_place(places, option.kind, word.substr(option.full.size() + 1));
      } else if (word.starts_with(option.brief) && !word.starts_with("--")) {
        add_place(places, option.kind, word.substr(word[2] == '=' ? 3 : 2));
      } else {
        continue;
      }
      break;
    }
  }
}

// The quoted values after a key: path = "../other".
std::vector<std::string> quoted_values(std::string_view line, std::string_view key) {
  std::vector<std::string> values;
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t sign = line.find_first_not_of(" \t\"'", at + key.size());
    const bool is_key = at == 0 || (std::isalnum(static_cast<unsigned char>(line[at - 1])) == 0 &&
                                    line[at - 1] != '_' && line[at - 1] != '-');
    if (!is_key || sign == std::string_view::npos || (line[sign] != '=' && line[sign] != ':')) {
      continue;
    }
    const std::size_t begin = line.find_first_not_of(" \t", sign + 1);
    if (begin == std::string_view::npos || (line[begin] != '"' && line[begin] != '\'')) {
      continue;
    }
    const std::size_t end = line.find(line[begin], begin + 1);
    if (end != std::string_view::npos) {
      values.emplace_back(line.substr(begin + 1, end - begin - 1));
    }
  }
  return values;
}

// Words that could be names of requirements files: "requirements/base.txt", "dev.in".
std::set<std::string> named_texts(std::string_view text) {
  std::set<std::string> names;
  std::string word;
  for (const char c : std::string(text) + '\n') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string_view("_./-").find(c) != std::string_view::npos) {
      word += c;
      continue;
    }
    if (word.ends_with(".txt") || word.ends_with(".in")) {
      names.insert(word);
    }
    word.clear();
  }
  return names;
}

// The files that describe the dependencies of a package.
constexpr const char* descriptions[] = {"pyproject.toml", "setup.cfg", "setup.py"};

class PackageReader {
 public:
  explicit PackageReader(const config::Config& config) : config_(config), project_(config.project) {}

  // Returns the text; "" if the file does not exist or was added already.
  std::string add_file(const std::string& name) {
    add_server_place(name);
    const auto path = own_path(name);
    const auto content = path && seen_.insert(*path).second ? read_beneath(project_, *path) : std::nullopt;
    if (!content) {
      return "";
    }
    lines_.insert("sha256 " + sha256_hex(*content) + " " + path->string());
    return decode_text(*content, project_ / *path);
  }
  // Adds a file and all files that it names. Paths of packages are relative to the project, because pip
  // resolves them relative to the folder where it runs.
  void add_requirements(const std::string& name) {
    const fs::path beside = fs::path(name).parent_path();
    for (const RequirementPlace& place : requirement_places(add_file(name))) {
      switch (place.kind) {
        case PlaceKind::requirements:
          add_requirements((beside / place.path).string());
          break;
        case PlaceKind::links:
          add_archives(is_own_folder(beside / place.path) ? (beside / place.path).string() : place.path);
          break;
        case PlaceKind::package:
        case PlaceKind::editable:
          add_package(place.path, place.kind == PlaceKind::editable);
          break;
      }
    }
  }
  void add_archives(const std::string& folder) {
    add_server_place(folder);
    if (!is_own_folder(folder)) {
      return;
    }
    for (const fs::path& entry : entries_of(project_ / folder)) {
      const fs::path name = (fs::path(folder) / entry.filename()).lexically_normal();
      if (is_archive(name.string()) && !seen_.contains(name)) {
        add_size(name);
      }
    }
  }
  // Adds a folder with a package, or an archive.
  void add_package(const std::string& place, bool editable) {
    const auto path = own_path(place);
    if (!path) {
      if (!editable) {
        add_server_place(place);
        return;
      }
      for (const char* file : descriptions) {  // its code is used in place
        add_server_place((fs::path(place) / file).string());
      }
      return;
    }
    if (!is_own_folder(*path)) {
      if (is_archive(path->string())) {
        add_content(path->string());  // another build of a wheel may have the same size
      }
      return;
    }
    if (!packages_.emplace(*path, editable).second) {
      return;
    }
    add_description(*path);
    if (editable) {
      return;  // its code is used in place
    }
    const std::string prefix = *path == "." ? "" : (*path / "").string();
    for (const std::string& name : sent()) {
      if (name.starts_with(prefix) && !name.ends_with('/') && !is_build_product(name.substr(prefix.size()))) {
        add_content(name);
      }
    }
  }
  // Adds the files that pip reads to find the dependencies of a package in this folder.
  void add_description(const fs::path& folder) {
    for (const char* file : descriptions) {
      const std::string text = add_file((folder / file).string());
      for (const std::string& name : named_texts(text)) {
        try {
          add_requirements((folder / name).string());
        } catch (const Error&) {  // the word is not the name of such a file
        }
      }
      add_paths(folder, text);
    }
  }
  // Adds the packages that a Pipfile or pyproject.toml in this folder refers to by path.
  void add_paths(const fs::path& folder, const std::string& text) {
    for (const std::string& line : split(text, '\n')) {
      const std::string plain = replace_all(line, " ", "");
      const bool editable =
          plain.find("editable=true") != std::string::npos || plain.find("develop=true") != std::string::npos;
      for (const char* key : {"path", "file"}) {
        for (const std::string& value : quoted_values(line, key)) {
          if (const std::string place = local_path(value); !place.empty()) {
            add_package((folder / place).string(), editable);
          }
        }
      }
    }
  }
  // Adds a file or folder outside the project, which only the server can read.
  void add_server_place(const std::string& place) {
    if (!place.empty() && !own_path(place)) {
      server_places_.insert(place);
    }
  }
  PackageFiles take_all() { return {.lines = std::move(lines_), .server_places = std::move(server_places_)}; }

 private:
  // nullopt: not in the project.
  static std::optional<fs::path> own_path(const fs::path& name) {
    fs::path path = name.lexically_normal();
    if (!path.has_filename() && path.has_parent_path()) {
      path = path.parent_path();  // "libs/"
    }
    const bool outside =
        path.empty() || path.is_absolute() || *path.begin() == ".." || path.string().starts_with('~');
    return outside ? std::nullopt : std::optional(path);
  }
  bool is_own_folder(const fs::path& folder) const {
    return own_path(folder) && is_folder(project_ / folder) &&
           config::lies_in(resolved(project_ / folder), resolved(project_));
  }
  void add_content(const std::string& name) {
    if (!seen_.insert(name).second) {
      return;
    }
    std::optional<std::string> content;
    try {
      content = read_beneath(project_, name);
    } catch (const Error&) {  // it is too large, or pip could not read it
      add_size(name);
    }
    if (content) {
      lines_.insert("sha256 " + sha256_hex(*content) + " " + name);
    }
  }
  void add_size(const fs::path& name) {
    std::error_code error;
    if (config::lies_in(resolved(project_ / name), resolved(project_)) &&
        fs::is_regular_file(project_ / name, error)) {
      lines_.insert("size " + std::to_string(fs::file_size(project_ / name, error)) + " " + name.string());
    }
  }
  // The files that are sent to the servers. Only these can be compared there.
  const std::set<std::string>& sent() {
    if (!sent_) {
      const std::vector<std::string> names = selected_names(config_, project_, Cancel());
      sent_.emplace(names.begin(), names.end());
    }
    return *sent_;
  }

  const config::Config& config_;
  const fs::path& project_;
  std::set<fs::path> seen_;
  std::set<std::pair<fs::path, bool>> packages_;
  std::optional<std::set<std::string>> sent_;
  std::set<std::string> lines_;
  std::set<std::string> server_places_;
};

bool is_remote_place(const std::string& place) {
  return place.find("://") != std::string::npos;
}

}  // namespace

std::vector<RequirementPlace> requirement_places(std::string_view text) {
  std::vector<RequirementPlace> places;
  for (const std::string& line : logical_lines(text)) {
    if (line.starts_with('-')) {
      read_options(line, places);
      continue;
    }
    const std::string requirement = line.substr(0, line.find(" -"));  // pip's options follow
    const std::string path = local_path(requirement);
    if (path.find('/') != std::string::npos || path.starts_with('.') || is_archive(path)) {
      add_place(places, PlaceKind::package, requirement);
    }
  }
  return places;
}

bool requires_module(std::string_view text, std::string_view module) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const std::vector<std::string> lines = logical_lines(text);
  return !module.empty() && std::ranges::any_of(lines, [&](const std::string& line) {
    return normalize_package(line.substr(0, line.find_first_not_of(characters))) == normalize_package(module);
  });
}

PackageFiles package_files(const config::Config& config, PackageSource source) {
  PackageReader files(config);
  switch (source) {
    case PackageSource::pipenv:
      files.add_paths("", files.add_file("Pipfile"));
      files.add_file("Pipfile.lock");
      break;
    case PackageSource::requirements:
      files.add_requirements("requirements.txt");
      break;
    case PackageSource::pyproject:
      files.add_description("");
      break;
    case PackageSource::none:
      return {};
  }
  for (const std::string& place : config.python.find_links) {
    if (!is_remote_place(place)) {
      files.add_archives(place);
    }
  }
  for (const std::string& file : config.python.constraints) {
    if (!is_remote_place(file)) {
      files.add_requirements(file);
    }
  }
  return files.take_all();
}

}  // namespace remote::servers
