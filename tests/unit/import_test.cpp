#include "project/import/import.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "config/config.hpp"

namespace remote::project {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Form = ServerListForm;

ServerList read(const std::string& text) {
  return read_server_list(text, "list", "/lists", "/work/proj");
}

// "name=user@host:port key=… internal=… jump=…" for each server.
std::vector<std::string> shown(const ServerList& list) {
  std::vector<std::string> lines;
  for (const config::NewServer& server : list.servers) {
    std::string line = server.name + "=" + (server.username ? *server.username + "@" : "") + server.hostname;
    line += server.port ? fmt::format(":{}", *server.port) : "";
    line += server.private_key ? " key=" + *server.private_key : "";
    line += server.internal_address ? " internal=" + *server.internal_address : "";
    line += server.proxy_jump ? " jump=" + *server.proxy_jump : "";
    lines.push_back(line);
  }
  return lines;
}

// The imported configuration must load.
void expect_loads(const ServerList& list) {
  config::NewProject project{"/work/proj", std::nullopt, list.servers};
  EXPECT_EQ(config::parse(config::new_config_text(project), project.folder).servers.size(),
            list.servers.size());
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message() + " " + error.hint();
  }
  return "";
}

TEST(Import, AHostfile) {
  const ServerList list =
      read("# workers\nworker-1 slots=4\nworker-2 slots=4\nworker-2 slots=4\n10.0.0.3:2\n[fd00::7]\n");
  EXPECT_EQ(list.form, Form::hostfile);
  EXPECT_THAT(shown(list),
              ElementsAre("worker-1=worker-1", "worker-2=worker-2", "10.0.0.3=10.0.0.3", "server-4=fd00::7"));
  EXPECT_THAT(list.left_out, ElementsAre("worker-1: slots", "worker-2: slots", "10.0.0.3: slots"));
  expect_loads(list);
}

TEST(Import, AnSshConfig) {
  const ServerList list = read(
      "Include ~/.ssh/other\n"
      "Host gpu-1 gpu-2 !gpu-9 *.example.org\n  HostName %h.example.org\n  Port 2222\n"
      "  IdentityFile ~/.ssh/id_gpu\n"
      "Host box\n  HostName=192.168.1.5\n  User ada\n  ProxyJump ann@bastion:22\n"
      "Host odd\n  ProxyCommand touch /tmp/never\n  IdentityFile ${HOME}/x\n"
      "Match host box exec \"touch /tmp/never\"\n  Port 99\n"
      "Host *\n  User ubuntu\n");
  EXPECT_EQ(list.form, Form::ssh_config);
  EXPECT_THAT(shown(list), ElementsAre("gpu-1=ubuntu@gpu-1.example.org:2222 key=~/.ssh/id_gpu",
                                       "gpu-2=ubuntu@gpu-2.example.org:2222 key=~/.ssh/id_gpu",
                                       "box=ada@192.168.1.5 jump=ann@bastion:22", "odd=ubuntu@odd"));
  EXPECT_THAT(list.left_out,
              ElementsAre("list:1: Include", "odd: IdentityFile ${HOME}/x", "odd: ProxyCommand"));
  expect_loads(list);
}

TEST(Import, NamesOfOneSshHostAreOneServer) {
  const ServerList list = read(
      "Host gpu gpu.example.org 10.0.0.1\n  HostName 10.0.0.1\n  UserKnownHostsFile /dev/null\n"
      "Host other same\n  HostName 10.0.0.2\n"
      "Host a b\n");
  EXPECT_THAT(shown(list), ElementsAre("gpu=10.0.0.1", "other=10.0.0.2", "a=a", "b=b"));
  EXPECT_THAT(list.left_out,
              ElementsAre("gpu: UserKnownHostsFile /dev/null", "gpu: its other name gpu.example.org",
                          "gpu: its other name 10.0.0.1", "other: its other name same"));
  expect_loads(list);
}

TEST(Import, SkyPilotsPools) {
  const ServerList list = read(
      "# ~/.sky/ssh_node_pools.yaml\nmy-cluster:\n  user: ubuntu\n  identity_file: ~/.ssh/pool\n  hosts:\n"
      "    - 1.2.3.4\n    - ip: 1.2.3.5\n      user: alice\n      identity_file: alice-key\n      password: "
      "secret\n"
      "my-box:\n  hosts:\n    - hostname_in_ssh_config\n");
  EXPECT_EQ(list.form, Form::skypilot);
  EXPECT_THAT(shown(list), ElementsAre("1.2.3.4=ubuntu@1.2.3.4 key=~/.ssh/pool",
                                       "1.2.3.5=alice@1.2.3.5 key=/lists/alice-key",
                                       "hostname_in_ssh_config=hostname_in_ssh_config"));
  EXPECT_THAT(list.left_out, ElementsAre("1.2.3.5: password"));
  expect_loads(list);
}

TEST(Import, DstacksFleet) {
  const ServerList list = read(
      "type: fleet\nname: my-fleet\nplacement: cluster\nssh_config:\n  user: ubuntu\n"
      "  identity_file: ~/.ssh/worker\n  hosts:\n    - 3.255.177.51\n    - hostname: 3.79.203.200\n"
      "      internal_ip: 172.17.0.1\n      port: 2200\n      blocks: 4\n"
      "  proxy_jump:\n    hostname: 3.255.177.50\n    user: ubuntu\n    identity_file: ~/.ssh/head\n");
  EXPECT_EQ(list.form, Form::dstack);
  EXPECT_THAT(shown(list),
              ElementsAre("3.255.177.51=ubuntu@3.255.177.51 key=~/.ssh/worker jump=ubuntu@3.255.177.50",
                          "3.79.203.200=ubuntu@3.79.203.200:2200 key=~/.ssh/worker internal=172.17.0.1 "
                          "jump=ubuntu@3.255.177.50"));
  EXPECT_THAT(list.left_out,
              ElementsAre("3.255.177.51: identity_file of proxy_jump",
                          "3.79.203.200: identity_file of proxy_jump", "3.79.203.200: blocks"));
  expect_loads(list);
}

TEST(Import, AnAnsibleInventoryAsIni) {
  const ServerList list = read(
      "mail.example.com  # alone\n\n[gpu]\ngpu[01:03].example.com ansible_user=ada\njumper "
      "ansible_host=192.0.2.50 "
      "ansible_port=5555 ansible_password='a b' note=\"x y\"\nbadwolf.example.com:5309\n"
      "localhost ansible_connection=local\n\n[gpu:vars]\nansible_user = ubuntu\n"
      "ansible_ssh_private_key_file=\"keys/id\"\n[site:children]\ngpu\n[site:vars]\nansible_user=nobody\n"
      "ansible_port=2222\n[all:vars]\nansible_user={{ lookup('pipe', 'touch /tmp/never') }}\n");
  EXPECT_EQ(list.form, Form::ansible_ini);
  EXPECT_THAT(shown(list),
              ElementsAre("mail.example.com=mail.example.com",
                          "gpu01.example.com=ada@gpu01.example.com:2222 key=/lists/keys/id",
                          "gpu02.example.com=ada@gpu02.example.com:2222 key=/lists/keys/id",
                          "gpu03.example.com=ada@gpu03.example.com:2222 key=/lists/keys/id",
                          "jumper=ubuntu@192.0.2.50:5555 key=/lists/keys/id",
                          "badwolf.example.com=ubuntu@badwolf.example.com:2222 key=/lists/keys/id"));
  EXPECT_THAT(list.left_out, ElementsAre("mail.example.com: ansible_user (a template)",
                                         "jumper: ansible_password", "localhost: ansible_connection: local"));
  expect_loads(list);
  EXPECT_THAT(shown(read("a ansible_user=x\nb\n")), ElementsAre("a=x@a", "b=b")) << "no section is needed";
}

TEST(Import, AnAnsibleInventoryAsYaml) {
  const ServerList list = read(
      "---\nall:\n  vars:\n    ansible_user: root\n  hosts:\n    mail.example.com:\n  children:\n    gpu:\n"
      "      vars: {ansible_user: ubuntu, other: [1, 2]}\n      hosts:\n        node[1:2]:\n        n9:\n"
      "          ansible_host: 10.0.0.9\n          ansible_port: 2222\n");
  EXPECT_EQ(list.form, Form::ansible_yaml);
  EXPECT_THAT(shown(list), ElementsAre("node1=ubuntu@node1", "node2=ubuntu@node2", "n9=ubuntu@10.0.0.9:2222",
                                       "mail.example.com=root@mail.example.com"));
  EXPECT_EQ(read("workers:\n  hosts:\n    a:\n    b:\n").form, Form::ansible_yaml);
  expect_loads(list);
}

TEST(Import, WhatIsWrongHasItsLine) {
  EXPECT_THAT(refusal("a\nb slots=many\n"), HasSubstr("list:2: 'many' is not a number of ranks"));
  EXPECT_THAT(refusal("Host a\n  HostName -oProxyCommand=x\n"),
              HasSubstr("list:1: the host '-oProxyCommand=x'"));
  EXPECT_THAT(refusal("Host a\n  Port 99999\n"), HasSubstr("list:1: the port '99999'"));
  EXPECT_THAT(refusal("[x]\na ansible_user='b\n"), HasSubstr("list:2: a quote is not closed"));
  EXPECT_THAT(refusal("[x]\na b\n"), HasSubstr("list:2: 'b' is not understood"));
  EXPECT_THAT(refusal("[x:y]\n"), HasSubstr("list:1: this is not a section"));
  EXPECT_THAT(refusal("[x]\nh[1:99999]\n"), HasSubstr("list:2: 'h[1:99999]' names more than 4096 hosts"));
  EXPECT_THAT(refusal("[x]\n$(touch x)\n"), HasSubstr("list:2:"));
  EXPECT_THAT(refusal("pool:\n  hosts: [{user: x}]\n"),
              HasSubstr("list:2:11: a host must be a name or have an `ip`"));
  EXPECT_THAT(refusal("name: x\nother: [1]\n"), HasSubstr("list: it is YAML, but of no known form"));
  EXPECT_THAT(refusal("a: [\n"), HasSubstr("list:1:1: a '[' is not closed"));
  EXPECT_THAT(refusal("# nothing\n"), HasSubstr("list: it names no host"));
  EXPECT_THAT(refusal("Host *\n  User x\n"), HasSubstr("list: it names no server"));
  EXPECT_THAT(refusal(std::string("a\0b", 3)), HasSubstr("NUL"));
  EXPECT_THAT(refusal(std::string(2 << 20, 'a')), HasSubstr("1 MiB"));
}

TEST(Import, AShortFileIsNoLongWork) {
  std::string yaml = "a0: &a0 {hosts: {h: }}\n";
  for (int i = 1; i < 30; ++i) {
    yaml += fmt::format("a{}: &a{} {{children: {{x: *a{}, y: *a{}}}}}\n", i, i, i - 1, i - 1);
  }
  EXPECT_THAT(refusal(yaml), HasSubstr("too many groups"));
  std::string ini = "[g0]\na\n";
  for (int i = 0; i < 2000; ++i) {
    ini += fmt::format("[g{}:children]\ng{}\ng{}\n", i + 1, i, i + 1);
  }
  EXPECT_THAT(shown(read(ini)), ElementsAre("a=a"));
  EXPECT_THAT(refusal("[x]\nh[1:4000][1:4000]\n"), HasSubstr("4096"));
}

}  // namespace
}  // namespace remote::project
