# An application with Action Mailbox of Rails. It prints its port, then each mail.
# ARGV: the ingress, its password (for Mailgun: the signing key), and a folder.
require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"
require "active_storage/engine"
require "action_mailbox/engine"
require "webrick"
require "rack/handler/webrick"
require "json"

ingress, password, folder = ARGV
ENV[ingress == "mailgun" ? "MAILGUN_INGRESS_SIGNING_KEY" : "RAILS_INBOUND_EMAIL_PASSWORD"] = password
ENV["RAILS_ENV"] = "production"
ENV["DATABASE_URL"] = "sqlite3:#{folder}/rails.sqlite3"

class Receiver < Rails::Application
  config.root = ARGV[2]
  config.load_defaults 6.1
  config.eager_load = false
  config.consider_all_requests_local = true
  config.secret_key_base = "of the test"
  config.hosts.clear if config.respond_to?(:hosts)
  config.log_level = :warn
  config.logger = Logger.new($stderr, level: :warn)
  config.action_mailbox.ingress = ARGV[0].to_sym
  config.active_job.queue_adapter = :inline
  config.action_mailbox.incinerate = false
  config.active_storage.service = :local
  config.active_storage.service_configurations = { local: { service: "Disk", root: "#{ARGV[2]}/files" } }
end

class ApplicationMailbox < ActionMailbox::Base
  routing all: :shown
end

class ShownMailbox < ApplicationMailbox
  def process
    puts({ subject: mail.subject, from: mail.from, recipients: mail.recipients,
           text: (mail.text_part || mail).decoded, files: mail.attachments.map(&:filename),
           message_id: mail.message_id }.to_json)
    $stdout.flush
  end
end

Rails.application.initialize!
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table :active_storage_blobs do |t|
    t.string :key, null: false
    t.string :filename, null: false
    t.string :content_type
    t.text :metadata
    t.string :service_name, null: false
    t.bigint :byte_size, null: false
    t.string :checksum
    t.datetime :created_at, null: false
    t.index [:key], unique: true
  end
  create_table :active_storage_attachments do |t|
    t.string :name, null: false
    t.references :record, null: false, polymorphic: true, index: false
    t.references :blob, null: false
    t.datetime :created_at, null: false
  end
  create_table :active_storage_variant_records do |t|
    t.belongs_to :blob, null: false, index: false
    t.string :variation_digest, null: false
  end
  create_table :action_mailbox_inbound_emails do |t|
    t.integer :status, default: 0, null: false
    t.string :message_id, null: false
    t.string :message_checksum, null: false
    t.timestamps
    t.index [:message_id, :message_checksum], name: "uniqueness", unique: true
  end
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, AccessLog: [],
                                 Logger: WEBrick::Log.new(File::NULL))
server.mount "/", Rack::Handler::WEBrick, Rails.application
puts server.config[:Port]
$stdout.flush
server.start
