#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_reader.hpp"

namespace remote::config {

// A value and its position.
template <typename Value>
struct Found {
  Value value;
  Mark mark;
};

// Collects warnings while reading a file. Their number is limited: a file full of unknown keys is one
// mistake, not a million.
class Warnings {
 public:
  // `strict`: treat an unknown key as an error.
  explicit Warnings(std::string file, bool strict = false) : file_(std::move(file)), strict_(strict) {}
  void add(Mark mark, const std::string& text);  // as "FILE:7:3: text", like errors
  bool strict() const { return strict_; }
  bool full() const;
  void leave_out() { ++left_out_; }  // counts a warning without storing its text
  std::vector<std::string> take();

 private:
  std::string file_;
  bool strict_;
  std::vector<std::string> texts_;
  std::size_t left_out_ = 0;
};

// The sections of the file; the tables of keys in section.cpp are indexed by this.
enum class Level { top, server, python, launch, container, history, notify, checkpoint };
const std::vector<std::string>& known_keys(Level level);

// One map of the file, read key by key with the expected type. A key that is missing, has no value
// ("password:") or is an empty string is nullopt: labml_remote's guide says "leave blank". A wrong type is an
// Error with file, line and column.
class Section {
 public:
  // `what`: its name in messages: "server 'first'". Warns about unknown keys. A null node is an empty
  // section; a node that is not a map is an Error.
  Section(const YamlNode& node, Level level, std::string what, const std::string& file, Warnings& warnings);

  std::optional<Found<std::string>> text(const std::string& key) const;
  // A string that passes a check in config/validate.hpp; otherwise an Error with the check's message.
  std::optional<std::string> checked(const std::string& key,
                                     std::optional<std::string> (*problem_of)(const std::string&)) const;
  // The Error for a string that is not a valid value of this key.
  Error unfit(const std::string& key, const Found<std::string>& found, const std::string& problem) const;
  std::optional<int> number(const std::string& key, int low, int high) const;
  std::optional<bool> boolean(const std::string& key) const;
  // A list of strings; a single string is a list with one item.
  std::vector<Found<std::string>> texts(const std::string& key) const;
  // A map of environment variables whose names are valid in sh.
  std::vector<std::pair<std::string, std::string>> variables(const std::string& key) const;
  // The node of a key that exists and is not null; otherwise nullptr.
  const YamlNode* node(const std::string& key) const;

  Mark mark() const { return map_->mark; }
  // The entry of an unknown key that was probably meant as this one ("host" for "hostname"); nullptr: none.
  const YamlNode::Entry* misnamed(const std::string& key) const;
  const std::vector<YamlNode::Entry>& entries() const { return map_->entries; }
  Error error(Mark mark, const std::string& reason, const std::string& hint = {}) const {
    return config_error(file_, mark, reason, hint);
  }

 private:
  void warn_of_unknown_keys(Level level, Warnings& warnings) const;
  [[noreturn]] void wrong_type(const std::string& key, const YamlNode& found,
                               const std::string& wanted) const;

  const YamlNode* map_;
  std::string what_;
  const std::string& file_;
};

// Readers for parts of configs.yaml. They throw Error with file, line and column.
Server read_server(const YamlNode::Entry& entry, const Config& config, const std::string& file,
                   Warnings& warnings);
// `scheduler` and the related keys of a server; nullopt: no scheduler.
std::optional<Slurm> read_slurm(const Section& section);
// `connection` for all servers, or for one.
std::optional<ConnectBy> read_connect_by(const Section& section);
// The problem with an option of sbatch such as "--mem=32G"; nullopt: valid.
std::optional<std::string> sbatch_problem(const std::string& option);
// `prologue` for all servers, or for one: a string, or a list of lines.
std::optional<std::string> read_prologue(const Section& section);
Python read_python(const YamlNode& node, const std::string& file, Warnings& warnings);
// `container` for all servers, or for one; `base`: that for all servers.
std::optional<Container> read_container(const Section& section, const std::optional<Container>& base,
                                        const std::string& file, Warnings& warnings);
// `what`: name in messages, such as "'launch'".
LaunchDefaults read_launch(const YamlNode& node, const std::string& what, const std::vector<Server>& servers,
                           const std::string& file, Warnings& warnings);
// Validates `launches`; an unknown key there is an Error.
std::vector<YamlNode::Entry> read_launches(const YamlNode& node, const std::vector<Server>& servers,
                                           const std::string& file);
// Reads `notify`, `outputs`, `checkpoint` and `spares`.
void read_ends_of_launches(const Section& top, Config& config, const std::string& file, Warnings& warnings);

}  // namespace remote::config
